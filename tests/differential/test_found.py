"""Scripts that once showed a defect of a store, as short as they were printed."""

import pytest

from outlive_conformance.servers.postgres import PostgresServer
from proof.differential import STORES, OpenStore, replay
from proof.differential.places import opener_on
from proof.differential.words import Letter, NewTree, Operation, Write

FOUND = {
    "a child that is born in the change that ends its tree, and moves aside with it": [
        Operation("commit", (NewTree(1, "a"),)),
        Operation(
            "commit", (Write(1, ("spawn", "go on"), starts=(NewTree(2, "a", aside=(1, "a.1"), successor_of=1),)),)
        ),
        Operation("list", ids=("a.1",), numbers=(9, 0, 1, 0, 0, 0), tags={"size": "x"}),
    ],
    "two starts of one id in a transaction: the second one is left out": [
        Operation("commit", (NewTree(1, "a"),)),
        Operation("transact", (Write(1, ("step",), starts=(NewTree(2, "b"), NewTree(3, "b"))),), name="n1"),
    ],
    "a start in a transaction that brings more than itself, and whose id is taken: it is left out": [
        Operation("commit", (NewTree(1, "a"),)),
        Operation("commit", (Write(1, ("succeed",)), NewTree(2, "b"), NewTree(3, "c"))),
        Operation("transact", (Write(2, ("step",), starts=(NewTree(4, "c", successor_of=1),)),), name="n1"),
        Operation("transact", (Write(2, ("step",), starts=(NewTree(5, "c", aside=(1, "a.1")),)),), name="n2"),
    ],
    "a tree that moves aside to an id that was taken a moment before": [
        Operation("commit", (NewTree(1, "a"),)),
        Operation(
            "commit",
            (Write(1, ("go on",), starts=(NewTree(2, "b"), NewTree(3, "a", aside=(1, "b"), successor_of=1))),),
        ),
    ],
    "a tree that wants an id a moment before it becomes free": [
        Operation("commit", (NewTree(1, "a"),)),
        Operation("commit", (Write(1, ("succeed",)),)),
        Operation("commit", (NewTree(2, "a"), NewTree(3, "b", aside=(1, "a.1")))),
    ],
    "a tree that is to move aside a moment before it ends": [
        Operation("commit", (NewTree(1, "a"),)),
        Operation("commit", (NewTree(2, "b", aside=(1, "a.1")), Write(1, ("succeed",)))),
        Operation("deliver", letters=(Letter("a", "m1"),), numbers=(2,)),
    ],
    "a tree that goes to sleep with inbox, and takes the mail a moment after": [
        Operation("commit", (NewTree(1, "a"),)),
        Operation("deliver", letters=(Letter("a", "m1"),), numbers=(2,)),
        Operation("commit", (Write(1, ("sleep",)), Write(1, lag=1, consumed=("m1",)))),
    ],
    "a tree that forgets twice in one call, and the second time not as much": [
        Operation("commit", (NewTree(1, "a"),)),
        Operation("commit", (Write(1, ("spawn", "end")),)),
        Operation("commit", (Write(1, ("forget",)), Write(1, ("forget",), lag=1, keeps=1))),
    ],
    "a tree that goes to sleep while mail waits for a child that it forgets": [
        Operation("commit", (NewTree(1, "a"),)),
        Operation("commit", (Write(1, ("spawn",)),)),
        Operation("deliver", letters=(Letter("a~1", "m1"),), numbers=(2,)),
        Operation("commit", (Write(1, ("end", "forget", "sleep")),)),
    ],
    "a child that asks the same people once more": [
        Operation("commit", (NewTree(1, "a"),)),
        Operation("commit", (Write(1, ("spawn",)),)),
        Operation("commit", (Write(1, ("ask", "ask")),)),
        Operation("commit", (Write(1, ("ask",)),)),
    ],
}


@pytest.mark.parametrize("script", FOUND.values(), ids=FOUND)
async def test_stores_agree(script: list[Operation], postgres_server: PostgresServer, postgres_database: str) -> None:
    """Whatever the batch, it is as if its changes were written one after the other."""
    stores: dict[str, OpenStore] = STORES | {"postgres": opener_on(postgres_server, postgres_database)}

    assert await replay(stores, script) is None
