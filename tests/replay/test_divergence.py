"""Code that the journal contradicts: found at the first contradiction, with a diff that a person can read (I10)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import msgspec
import pytest

from outlive._kernel.journal.event import AnyEvent
from outlive._kernel.journal.fold import STATUS
from outlive._kernel.replay.command import Command, EndRun, RunStep, StartChild, StartDetached
from outlive._kernel.replay.execution import Execution
from outlive._kernel.replay.feeding import feed
from outlive.events import (
    AttemptFailed,
    DetachedStarted,
    RunCancelled,
    RunCreated,
    RunFailed,
    RunSucceeded,
    RunTimedOut,
    StepFailed,
    StepSucceeded,
    TimerFired,
)
from outlive.types import Workflow
from tests.replay.define import Code
from tests.replay.driver import live
from tests.replay.life import Asked, Life, describe, fed
from tests.replay.mutants import CORPUS, UNUSED_SIGNAL, Mutant, sequence, sub

PARKED = [mutant for mutant in CORPUS if mutant.journal]
ARGUMENTS = [mutant for mutant in CORPUS if "other arguments" in mutant.code]
"""Changes of nothing but arguments: they contradict the journal only where the workflow says so."""
COMPATIBLE = [mutant for mutant in CORPUS if not mutant.journal]


def original_life(mutant: Mutant) -> Life:
    """How a run of the original lived."""
    code = Code(mutant.original, sub)
    return live(mutant.original, mutant.argument, code=code, inject=mutant.inject, outcomes=mutant.outcomes)


def strict(of: Workflow[..., Any]) -> Workflow[..., Any]:
    """The same code with `strict_arguments=True`."""
    return Workflow(msgspec.structs.replace(of.spec, strict_arguments=True), {})


def feed_until_parked(code: Code, journal: list[AnyEvent]) -> tuple[int, str]:
    """Where and why the journal cannot be replayed with this code; (-1, "") if it can."""
    with fed(code, []) as execution:
        execution.look_ahead(journal)
        for seq, event in enumerate(journal):
            commands = feed(execution, event)
            if execution.is_parked:
                ((_, reason),) = [describe(command) for command in commands]
                return seq, str(reason)
    return -1, ""


def test_the_corpus_is_large_enough() -> None:
    """At least thirty changes, most of them contradictions."""
    assert len(CORPUS) >= 50
    assert len(PARKED) >= 30
    assert len({str(mutant) for mutant in CORPUS}) == len(CORPUS)


@pytest.mark.parametrize("mutant", PARKED, ids=str)
def test_a_contradiction_parks_the_run_with_a_readable_diff(mutant: Mutant) -> None:
    """The reason names the event, what the journal has, what the code asked, and the definition and version."""
    life = original_life(mutant)
    seq, reason = feed_until_parked(Code(strict(mutant.changed), mutant.child), life.journal)

    assert seq == mutant.at, reason
    assert f"at event {mutant.at}" in reason
    assert "@1" in reason
    assert mutant.journal in reason
    assert mutant.code in reason


@pytest.mark.parametrize("mutant", ARGUMENTS, ids=str)
def test_other_arguments_are_noted_and_contradict_nothing(mutant: Mutant) -> None:
    """The answer of the journal counts; the first difference is where a strict workflow would have been parked."""
    life = original_life(mutant)
    with fed(Code(mutant.changed, mutant.child), life.journal[: mutant.at + 1]) as execution:
        assert not execution.is_parked
        first, *_ = execution.differences.values()

    assert (first.seq, first.definition) == (mutant.at, f"{mutant.original.name}@1")
    assert first.call in mutant.journal


@pytest.mark.parametrize("mutant", COMPATIBLE, ids=str)
def test_a_compatible_change_makes_no_difference(mutant: Mutant) -> None:
    """Only other arguments are noted."""
    with fed(Code(mutant.changed, mutant.child), original_life(mutant).journal) as execution:
        assert not execution.differences


@pytest.mark.parametrize("mutant", PARKED, ids=str)
def test_before_the_contradiction_nothing_is_lost(mutant: Mutant) -> None:
    """A run that has not come that far is not parked: it goes on with the new code."""
    life = original_life(mutant)
    with fed(Code(mutant.changed, mutant.child), life.journal[: mutant.at]) as execution:
        assert not execution.is_parked
        assert execution.outstanding() or execution.waits() or not mutant.at


@pytest.mark.parametrize("mutant", COMPATIBLE, ids=str)
def test_a_compatible_change_asks_for_the_same_after_every_event(mutant: Mutant) -> None:
    """From every prefix of the journal the changed code has the same things left to do."""
    life = original_life(mutant)
    for length in range(1, len(life.journal) + 1):
        original, changed = Code(mutant.original, sub), Code(mutant.changed, mutant.child)
        with fed(original, life.journal[:length]) as left, fed(changed, life.journal[:length]) as right:
            assert what_is_left(right) == what_is_left(left)


def what_is_left(execution: Execution) -> tuple[list[Asked], list[tuple[str, str, int]]]:
    """Calls with their arguments, waits by name; how long a timer takes and what a run returns may change."""
    assert not execution.is_parked
    asked = [describe(command) for command in execution.outstanding()]
    asked = [each[:3] if each[0] == "end" else each for each in asked]
    return asked, sorted((wait.kind.value, wait.name, wait.run) for wait in execution.waits())


def test_a_signal_that_is_not_taken_any_more_contradicts_nothing() -> None:
    """Code that no longer takes a signal fits the journal, because the signal stays in the buffer."""
    life = original_life(UNUSED_SIGNAL)

    assert feed_until_parked(Code(UNUSED_SIGNAL.changed), life.journal) == (-1, "")


# -- No silent divergence -------------------------------------------------------------------------------------

EVERYTHING: list[Workflow[..., Any]] = list(
    {id(each): each for mutant in CORPUS for each in (mutant.original, mutant.changed)}.values()
)


def renamed(of: Workflow[..., Any], name: str) -> Workflow[..., Any]:
    """The same code under the name of another workflow."""
    return Workflow(msgspec.structs.replace(of.spec, name=name), {})


def lives() -> Iterator[Life]:
    """A life of each original."""
    seen = set()
    for mutant in CORPUS:
        if mutant.original.name not in seen:
            seen.add(mutant.original.name)
            yield original_life(mutant)


def test_any_code_parks_at_the_first_event_that_it_did_not_ask_for() -> None:
    """Every journal against every code: no event is accepted that does not answer exactly what the code asked.
    [FB-R12]"""
    contradictions = 0
    for life, other in product(list(lives()), EVERYTHING):
        code = Code(strict(renamed(other, life.of.name)), sub)
        with fed(code, []) as execution:
            for event in life.journal:
                wrong = not is_asked(execution, event)
                feed(execution, event)
                assert execution.is_parked or not wrong, f"{other.fn.__name__} swallowed {event}"
                if execution.is_parked:
                    contradictions += 1
                    break

    assert contradictions > 300


def is_asked(execution: Execution, event: AnyEvent) -> bool:
    """Whether the code waits for exactly this: the oracle of these tests, from what the execution says of itself."""
    commands = execution.outstanding()
    match event:
        case StepSucceeded() | StepFailed() | AttemptFailed():
            return any(answers_step(command, event.run, event.call, event.digest) for command in commands)
        case RunCreated() if event.run:
            return any(
                isinstance(command, StartChild)
                and (command.parent, command.call, command.digest) == (event.parent, event.call, event.digest)
                and (command.run, command.workflow.name) == (event.run, event.workflow)
                for command in commands
            )
        case DetachedStarted():
            return any(
                isinstance(command, StartDetached)
                and (command.call, command.digest, command.run_id) == (event.call, event.digest, event.run_id)
                for command in commands
            )
        case TimerFired():
            return any((wait.run, wait.name) == (event.run, event.call) for wait in execution.waits() if wait.until_at)
        case RunSucceeded() | RunFailed() | RunCancelled() | RunTimedOut():
            status = STATUS[type(event)]
            return any(isinstance(each, EndRun) and (each.run, each.status) == (event.run, status) for each in commands)
        case _:
            return True


def answers_step(command: Command, run: int, call: str, digest: int) -> bool:
    """Whether an outcome is that of this command."""
    return isinstance(command, RunStep) and (command.run, command.call, command.digest) == (run, call, digest)


# -- The text -------------------------------------------------------------------------------------------------


def test_the_diff_reads_like_a_diff() -> None:
    """A person sees what the journal has, what the code does, and what to do about it."""
    mutant = next(mutant for mutant in CORPUS if str(mutant) == "sequence_inserted_between")
    _, reason = feed_until_parked(Code(mutant.changed), original_life(mutant).journal)

    assert reason.splitlines() == [
        "the code of sequence@1 no longer matches the journal at event 2",
        "  - journal: step b succeeded",
        "  + code:    waits for step c",
        "deploy the code that wrote this journal, or give the new code another version, then resume the run",
    ]


def test_a_child_is_named_by_its_own_definition() -> None:
    """The code that must change is that of the child."""
    mutant = next(mutant for mutant in CORPUS if mutant.child.fn.__name__ == "sub_longer")
    _, reason = feed_until_parked(Code(mutant.changed, mutant.child), original_life(mutant).journal)

    assert "the code of sub@1 no longer matches the journal at event 4" in reason


def test_code_that_waits_for_the_end_of_another_tree_has_not_ended() -> None:
    """The diff lists everything that the code waits for."""
    mutant = next(mutant for mutant in CORPUS if str(mutant) == "apart_waits")
    _, reason = feed_until_parked(Code(mutant.changed, sub), original_life(mutant).journal)

    assert "+ code:    waits for the end of one" in reason


def test_a_workflow_that_is_not_deployed_parks() -> None:
    """A run whose workflow, or that of its child, is not deployed is parked with the name of the missing workflow."""
    life = original_life(next(mutant for mutant in CORPUS if mutant.original.name == "family"))

    seq, reason = feed_until_parked(Code(life.of), life.journal)
    assert seq == 1
    assert "no workflow sub@1 is defined here" in reason

    seq, reason = feed_until_parked(Code(sequence), life.journal)
    assert seq == 0
    assert "no workflow family@1 is defined here" in reason
