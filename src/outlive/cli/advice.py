"""Advice in the words of a terminal: `outlive runs resume order-7` where Python says `engine.resume('order-7')`."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from outlive.errors.advice import Advice

COMMANDS: dict[tuple[str, str], str] = {
    ("approvals.list", ""): "approvals list",
    ("approvals.list", "run_id"): "approvals list --run {run_id}",
    ("ask", "run_id"): "ask {run_id} {name} --key {key}",
    ("asks.answer", "run_id"): "ask {run_id} {name} --key {key}",
    ("batches.retry", "batch_id"): "batches retry {batch_id}",
    ("cancel", "run_id"): "runs cancel {run_id}",
    ("flows.enable", "name"): "flows enable {name}",
    ("flows.list", ""): "flows list",
    ("keys.list", ""): "keys list",
    ("list", ""): "runs list",
    ("queues.list", ""): "queues list",
    ("queues.resume", "queue"): "queues resume {queue}",
    ("queues.set", "queue"): "queues set {queue} --concurrency {concurrency}",
    ("quotas.set", "namespace"): "namespaces quota {namespace}",
    ("resume", "all"): "runs resume --all",
    ("resume", "run_id"): "runs resume {run_id}",
    ("resume", "workflow"): "runs resume --workflow {workflow}",
    ("schedules.list", ""): "schedules list",
    ("schedules.resume", "name"): "schedules resume {name}",
    ("skip_step", "run_id"): "runs skip {run_id}",
    ("workflows.list", ""): "workflows list",
}
"""The command for each kind of advice; its arguments stand in braces."""


def as_typed(said: object) -> str:
    """An error, or what `why` said, with its advice as commands; anything else as it is."""
    from outlive._kernel.model.why import Why
    from outlive.errors import InvalidArgumentError, OutliveError

    # The refusal of a body by a server names no argument.
    if isinstance(said, InvalidArgumentError) and said.name:
        given = "" if said.given is None else f" {_word(said.given)}"
        like = "" if said.example is None else f", for example {_word(said.example)}"
        return f"{said.name.replace('_', ' ')}{given} cannot work: {said.wanted}{like}"
    if isinstance(said, OutliveError | Why):
        return typed(said.summary, said.advice)
    return str(said)


def _word(value: object) -> str:
    """A value as a person types it."""
    from outlive.errors.program import shown, shown_text

    return shown_text(value) if isinstance(value, str) and value else shown(value)


def typed(summary: str, advice: Iterable[Advice]) -> str:
    """A sentence with its advice as commands."""
    from outlive.errors.advice import in_words

    return in_words(summary, advice, as_command)


def as_command(advice: Advice) -> str:
    """The command that a person types; empty if none does it."""
    from outlive.errors.advice import kind_of, with_effect

    command = COMMANDS.get(kind_of(advice))
    if command is None:
        return ""
    words = {name: shlex.quote(str(it)) for name, it in advice.arguments.items()}
    return with_effect(advice, f"`outlive {command.format(**words)}`")
