"""Advice of the engine is advised to a person at a terminal as a command."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from outlive.cli import main
from outlive.cli.advice import COMMANDS, as_command, as_typed
from outlive.errors import OutliveError, RunNotFoundError, RunParkedError
from outlive.errors.advice import Advice, kind_of
from outlive.errors.run import ApprovalNotFoundError, AskTimeoutError, QueueNotFoundError, RunNotRetriableError
from outlive.http.advice import REQUESTS
from outlive.types import Why
from tests.http.problems import EVERY, example_of


@pytest.mark.parametrize(
    ("said", "typed"),
    [
        (RunNotFoundError("a"), "or start it first; `outlive runs list` shows the runs of the store"),
        (
            RunParkedError("it's 7", "broken"),
            "`outlive runs resume 'it'\"'\"'s 7'` lets it go on when the cause is gone; `outlive runs skip 'it'\"'\"'s",
        ),
        (AskTimeoutError("a", "add", "k)1", seconds=1, why=""), "`outlive ask a add --key 'k)1'` waits for its answer"),
        (QueueNotFoundError("mail", "mails"), "did you mean 'mails'? `outlive queues list` shows all queues"),
        (QueueNotFoundError("mail"), "`outlive queues set mail --concurrency 5` makes one"),
        (
            ApprovalNotFoundError("a", "b", []),
            "`outlive approvals list --run a` shows the approvals that the run has asked for",
        ),
        (
            RunNotRetriableError("a", Why("no", Advice("batches.retry", {"batch_id": "a"}, "starts another one"))),
            "`outlive batches retry a` starts another one",
        ),
        (Why("it is paused", Advice("resume", {"all": True}, "lets it go on")), "`outlive runs resume --all` lets it"),
        (Why("it is paused", Advice("resume", {"workflow": "a b"})), "`outlive runs resume --workflow 'a b'`"),
    ],
)
def test_advice_becomes_a_command(said: object, typed: str) -> None:
    """Advice becomes a command with its arguments, as a shell reads them."""
    assert typed in as_typed(said)


def test_text_of_an_earlier_release_stays_as_it_is() -> None:
    """A reason in the journal of an earlier release keeps its words; so does what the code of a user says."""
    assert as_typed("parked; engine.resume('x') lets it go on") == "parked; engine.resume('x') lets it go on"


def test_advice_without_a_command_is_left_out() -> None:
    """Advice that no command can follow is not said in a terminal."""
    error = OutliveError("it is so").advising(Advice("lifespan"))

    assert as_typed(error) == "it is so"


@pytest.mark.parametrize("command", sorted(set(COMMANDS.values())))
def test_every_command_that_is_advised_exists(command: str) -> None:
    """A command that is advised has the options that are advised with it."""
    words = command.split()
    name = words[: next((at for at, word in enumerate(words) if word[0] in "-{"), len(words))]
    shown = CliRunner().invoke(main, [*name, "--help"])

    assert shown.exit_code == 0
    assert all(option in shown.output for option in words if option.startswith("--"))


@pytest.mark.parametrize("kind", EVERY.values(), ids=EVERY)
def test_advice_of_every_error_has_a_command(kind: type[OutliveError]) -> None:
    """The advice of every error is a call in Python, a command, and a request if an operation does it."""
    for advice in example_of(kind).advice:
        assert as_command(advice)
        assert kind_of(advice) in REQUESTS or advice.verb == "quotas.set"
