"""What the engine advises in Python is advised to a person at a terminal as a command."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from outlive.cli import main
from outlive.cli.advice import COMMANDS, as_typed
from outlive.errors import RunNotFoundError, RunParkedError
from outlive.errors.run import ApprovalNotFoundError, AskTimeoutError, QueueNotFoundError, ScheduleNotFoundError


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RunNotFoundError("a"), "(`outlive runs list` shows its runs)"),
        (
            RunParkedError("it's 7", "broken"),
            "`outlive runs resume 'it'\"'\"'s 7'` lets it go on; `outlive runs skip 'it'\"'\"'s 7'` does so",
        ),
        (AskTimeoutError("a", "add", "k)1", seconds=1, why=""), "`outlive ask a add --key 'k)1'` waits for its answer"),
        (QueueNotFoundError("mail"), "`outlive queues set mail --concurrency 5` makes one"),
        (ApprovalNotFoundError("a", "b", []), "look at `outlive approvals list --run a`"),
    ],
)
def test_a_call_of_the_engine_becomes_a_command(error: Exception, said: str) -> None:
    """With its arguments, as a shell reads them."""
    assert said in as_typed(str(error))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("engine.resume(all=True) lets it go on", "`outlive runs resume --all` lets it go on"),
        ("engine.resume(workflow='a b')", "`outlive runs resume --workflow 'a b'`"),
        ("try `engine.cancel('x')`", "try `outlive runs cancel x`"),
        ("its form is in engine.approvals.list(run_id)", "its form is in `outlive approvals list --run RUN_ID`"),
        ("engine.audit.verify: since='x' cannot work", "outlive audit verify: since='x' cannot work"),
        ("engine.start(order, 7) and engine.lister()", "engine.start(order, 7) and engine.lister()"),
        ("engine.resume(run[0])", "engine.resume(run[0])"),
        ("engine.resume('x", "outlive runs resume('x"),
    ],
)
def test_the_rest_of_a_sentence_stays_as_it_is(text: str, said: str) -> None:
    """A sentence of advice keeps its words around the command, a call that only a program can make, and text that is
    not a call."""
    assert as_typed(text) == said


def test_a_text_that_looks_like_many_calls_is_read_in_time_that_grows_with_its_length() -> None:
    """It may be the message of an error of a user's own code."""
    text = f"engine.list({')' * 100_000}" + "engine.list('x" * 1_000

    assert as_typed(text).startswith("`outlive runs list`)")


def test_advice_that_only_a_program_can_follow_keeps_its_call() -> None:
    """Advice to make a schedule, for which there is no command, keeps the call of the engine."""
    said = as_typed(str(ScheduleNotFoundError("digest")))

    assert "`outlive schedules list` shows" in said
    assert "engine.schedules.set('digest', outlive.every(minutes=15), workflow) makes one" in said


@pytest.mark.parametrize("command", sorted({words for words, *_ in COMMANDS.values()}))
def test_every_command_that_is_advised_exists(command: str) -> None:
    """With the name that is advised."""
    assert CliRunner().invoke(main, [*command.split(), "--help"]).exit_code == 0
