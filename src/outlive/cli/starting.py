"""The options of a start, once for every command that starts runs: those of `client.start_options`."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, TypeVar

import click

from outlive.cli import completing as complete
from outlive.cli.edge import Mistake
from outlive.cli.filters import tag_of
from outlive.cli.values import instant_of, seconds_of

C = TypeVar("C", bound=Callable[..., Any])

OPTIONS = {
    "id": click.option("--id", "id", help="The id of the run: the same id again is the same run, also after its end."),
    "on_conflict": click.option(
        "--on-conflict",
        type=click.Choice(["attach", "attach_open", "reject", "reject_open", "replace", "cancel_open"]),
        help=(
            "When the id is taken: follow that run, follow it if it has not ended, refuse, refuse if it has not ended, "
            "take its place at once, or take it when that run was cancelled and has ended."
        ),
    ),
    "timeout": click.option(
        "--timeout", metavar="SPAN", help="How long a new run may take from when it begins: 5m, 1h30m."
    ),
    "tags": click.option(
        "--tag", "tags", multiple=True, metavar="NAME=VALUE", help="A tag of a new run; may be repeated."
    ),
    "headers": click.option(
        "--header", "headers", multiple=True, metavar="NAME=VALUE", help="A header of a new run; may be repeated."
    ),
    "queue": click.option(
        "--queue",
        metavar="NAME",
        shell_complete=complete.queue_names,
        help="The queue in which it waits for its turn; that of the workflow unless given, default for none.",
    ),
    "key": click.option("--key", help="The key in the queue: runs with the same key take turns."),
    "priority": click.option(
        "--priority", type=int, metavar="NUMBER", help="In a queue with priorities: the higher one goes first."
    ),
    "slots": click.option("--slots", type=int, metavar="NUMBER", help="How many slots of the queue it takes: 1."),
    "delay": click.option("--delay", metavar="SPAN", help="How long from now it is to begin: 5m."),
    "start_at": click.option("--start-at", metavar="WHEN", help="The instant instead: 2026-11-01T06:00+01:00."),
    "begin_within": click.option(
        "--begin-within", metavar="SPAN", help="It fails if no worker has begun it by then: 5m."
    ),
}
"""Each by its name in `engine.start`."""
PLACE = ("queue", "key", "priority", "slots")
SPANS = ("timeout", "delay", "begin_within")
PAIRS = {"tags": "--tag", "headers": "--header"}


def start_options(*names: str) -> Callable[[C], C]:
    """Adds these options to a command, or all of them; it gets what was given as keyword arguments."""

    def add(command: C) -> C:
        for name in reversed(names or tuple(OPTIONS)):
            command = OPTIONS[name](command)
        return command

    return add


def options_of(given: dict[str, Any], names: Collection[str] = OPTIONS) -> dict[str, Any]:
    """The options of `engine.start` that were given.

    Raises:
        Mistake: one of them cannot be read.
    """
    found = {name: given[name] for name in names if given.get(name) not in (None, ())}
    for name in found.keys() & PAIRS.keys():
        found[name] = dict(tag_of(PAIRS[name], each) for each in found[name])
    for name in found.keys() & set(SPANS):
        found[name] = seconds_of(f"--{name.replace('_', '-')}", found[name])
    if "start_at" in found:
        found["start_at"] = instant_of("--start-at", found["start_at"])
    if "delay" in found and "start_at" in found:
        raise Mistake("give --delay or --start-at, not both")
    return found
