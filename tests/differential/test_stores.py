"""Whatever is asked of them, all stores answer as the contract has it: random scripts against a small oracle."""

import pytest

from outlive._kernel.model import RunStatus
from outlive._kernel.store.contract import MessageKind
from outlive_conformance.servers.postgres import PostgresServer
from proof.differential import OPERATIONS_PER_EPISODE, STORES, OpenStore, find_difference, replay
from proof.differential.places import opener_on
from proof.differential.words import Letter, Mark, NewTree, Operation, Turn, Write

SHARES = 10
EPISODES = 3
"""In each share: 10,000 operations in all. Every change is tried with one share, and `make slow` has the others."""
WORDS = (Operation, NewTree, Write, Letter, Turn, Mark, MessageKind, RunStatus)


@pytest.fixture
def stores(postgres_server: PostgresServer, postgres_database: str) -> dict[str, OpenStore]:
    """All stores, on the server of the tests."""
    return STORES | {"postgres": opener_on(postgres_server, postgres_database)}


@pytest.mark.parametrize("share", [0, *(pytest.param(share, marks=pytest.mark.slow) for share in range(1, SHARES))])
async def test_stores_agree_with_the_contract(stores: dict[str, OpenStore], share: int) -> None:
    """Answer by answer, and in everything that they show."""
    for number in range(EPISODES):
        difference = await find_difference(stores, f"{share}:{number}", OPERATIONS_PER_EPISODE)
        if difference is not None:
            raise difference


async def test_script_is_played_again_as_it_was_printed(stores: dict[str, OpenStore]) -> None:
    """A printed script is Python that gives the same script, and can be played again."""
    script = [
        Operation("commit", (NewTree(1, "a", tags={"size": "x"}),)),
        Operation("deliver", letters=(Letter("a", "m1", MessageKind.RESUME),), numbers=(2,)),
        Operation("commit", (Write(1, ("succeed",), consumed=("m1",)), NewTree(2, "a"))),
        Operation("list", ids=("a",), numbers=(2, 0, 0, 0, 0, 0), statuses=(RunStatus.SUCCEEDED,)),
        Operation("commit", (Write(2, ("spawn", "end", "forget"), keeps=1, is_guarded=True),)),
        Operation("turn", turns=(Turn("gate", b"\x00", (None, b"open")), Turn("", expects=(b"",)))),
        Operation("append", marks=(Mark("a", 0), Mark("a", 1, "B", token=2, output=b""))),
    ]

    assert eval(repr(script), {kind.__name__: kind for kind in WORDS}) == script
    assert await replay(stores, script) is None
