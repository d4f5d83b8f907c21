"""A replay does not encode what the journal has answered: arguments are not identity."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from outlive import start
from outlive._kernel.journal.arguments import Signature
from outlive._kernel.replay.command import RunStep
from outlive.errors import UnserialisableError
from outlive.events import StepSucceeded
from tests.replay.define import Code, step, workflow
from tests.replay.driver import live
from tests.replay.life import fed

TURNS = 20


@step()
async def say(messages: list[Any]) -> str:
    """The next line of a conversation."""
    return f"line {len(messages)}"


@workflow()
async def remember(messages: list[Any]) -> int:
    """A child that is given the whole conversation."""
    return len(messages)


@workflow()
async def talk() -> list[Any]:
    """A conversation that grows; in the end it is given to a child and to a detached run."""
    messages: list[Any] = []
    for _ in range(TURNS):
        messages.append(await say(messages))
    await remember(messages)
    await start(remember, messages, detached=True)
    messages.append(await say(messages))
    return messages


CODE = Code(talk, remember)


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The functions whose arguments were encoded, in order."""
    names: list[str] = []
    encode = Signature.encode

    def noting(self: Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
        names.append(self._name)
        return encode(self, args, kwargs)

    monkeypatch.setattr(Signature, "encode", noting)
    return names


def test_replay_encodes_the_arguments_of_open_calls_only(encoded: list[str]) -> None:
    """Steps, children and detached runs that the journal answers are not encoded; the step under way is."""
    life = live(talk, code=CODE)
    last = max(place for place, kind in enumerate(life.kinds) if kind == "StepSucceeded")
    encoded.clear()

    with fed(CODE, life.journal[:last], compares_arguments=False) as execution:
        assert encoded == ["say"]
        (command,) = [each for each in execution.outstanding() if isinstance(each, RunStep)]

        ((given,), _) = command.step.signature.decode(command.arguments)
        assert given == [f"line {number}" for number in range(TURNS)]


def test_replay_that_compares_encodes_everything(encoded: list[str]) -> None:
    """A replay that compares arguments, as `check-deploy` does, encodes the arguments of every call."""
    life = live(talk, code=CODE)
    encoded.clear()

    with fed(CODE, life.journal, compares_arguments=True):
        assert len(encoded) == TURNS + 3


@workflow()
async def careful() -> list[str]:
    """It gives a step what cannot be stored, hears of that, and goes on."""
    said = []
    for message in ("good", object(), "better"):
        try:
            said.append(await say([message]))
        except UnserialisableError:
            said.append("refused")
    return said


def test_call_that_is_refused_for_its_arguments_uses_up_its_identity() -> None:
    """The replay does not take the answer of the next call for the answer of the refused one."""
    life = live(careful)

    assert life.result == ["line 1", "refused", "line 1"]
    assert [event.call for event in life.journal if isinstance(event, StepSucceeded)] == ["say", "say#3"]
    with fed(Code(careful), life.journal[:-1], compares_arguments=False) as execution:
        assert execution.outstanding()[0].result == b'["line 1","refused","line 1"]'  # type: ignore[union-attr]


def test_journal_of_an_earlier_release_keeps_the_identities_of_its_time() -> None:
    """There a refused call left its identity to the next one: the replay encodes, to know which call is which."""
    life = live(careful)
    first, said, better, *_ = life.journal
    old = [replace(first, spends_names=False), said, replace(better, call="say#2")]

    with fed(Code(careful), old, compares_arguments=False) as execution:
        assert execution.outstanding()[0].result == b'["line 1","refused","line 1"]'  # type: ignore[union-attr]
