"""The options that say which runs a command is about, and the filters of `engine.list` that they become."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from outlive.cli import completing as complete
from outlive.cli.completing import statuses
from outlive.cli.edge import Mistake
from outlive.cli.values import moment_of

C = TypeVar("C", bound=Callable[..., Any])

OPTIONS = {
    "workflow": click.option("--workflow", metavar="NAME", help="Only runs of this workflow."),
    "statuses": click.option(
        "--status",
        "statuses",
        multiple=True,
        metavar="STATUS",
        shell_complete=statuses,
        help="Only runs in this status; may be repeated.",
    ),
    "tags": click.option(
        "--tag", "tags", multiple=True, metavar="NAME=VALUE", help="Only runs with this tag; may be repeated."
    ),
    "ids": click.option(
        "--run-id", "ids", multiple=True, metavar="ID", help="Only the run with this id; may be repeated."
    ),
    "version": click.option(
        "--workflow-version", "version", type=int, metavar="N", help="Only runs of this version of their workflow."
    ),
    "parent_id": click.option("--parent-id", metavar="ID", help="Only children that this run started."),
    "id_prefix": click.option("--id-prefix", metavar="TEXT", help="Only runs whose id begins with this."),
    "error": click.option("--error", metavar="CLASS", help="Only runs that failed with an exception of this class."),
    "waiting_for": click.option(
        "--waiting-for", metavar="NAME", help="Only runs that wait for this signal, ask, approval or run; or @timer."
    ),
    "queue": click.option(
        "--queue",
        metavar="NAME",
        shell_complete=complete.queue_names,
        help="Only runs that were started in this queue; default for none.",
    ),
    "since": click.option(
        "--since", metavar="WHEN", help="Created then or later: 2h (ago), 2026-11-01, 2026-11-01T06:00+01:00."
    ),
    "until": click.option("--until", metavar="WHEN", help="Created before that."),
    "finished_since": click.option("--finished-since", metavar="WHEN", help="Ended then or later, as 2h (ago)."),
    "finished_until": click.option("--finished-until", metavar="WHEN", help="Ended before that."),
    "internal": click.option("--internal", is_flag=True, help="Also runs that the engine makes for itself."),
}
"""Each by the name of what a command is given."""


def filter_options(command: C) -> C:
    """Add the options to a command, which gets what was given as keyword arguments."""
    for option in reversed(OPTIONS.values()):
        command = option(command)
    return command


def filters_of(given: dict[str, Any]) -> dict[str, Any]:
    """The filters of `engine.list`, of the options that were given.

    Raises:
        Mistake: one of them cannot be read.
    """
    found = {name: given[name] for name in OPTIONS if given.get(name)}
    if "statuses" in found:
        found["status"] = [status_of(status) for status in found.pop("statuses")]
    if "tags" in found:
        found["tags"] = dict(tag_of("--tag", tag) for tag in found["tags"])
    for name in ("since", "until", "finished_since", "finished_until"):
        if name in found:
            found[name] = moment_of(f"--{name.replace('_', '-')}", found[name])
    return found


def status_of(text: str) -> str:
    """A status as a person writes it."""
    from outlive._kernel.model import RunStatus

    names = [status.value for status in RunStatus]
    status = text.replace("-", "_").lower()
    if status not in names:
        raise Mistake(f"--status {text}: it is one of {', '.join(names)}")
    return status


def tag_of(option: str, tag: str) -> tuple[str, str]:
    """A tag as a person writes it.

    Raises:
        Mistake: it is none.
    """
    name, equals, value = tag.partition("=")
    if not equals or not name:
        raise Mistake(f"{option} {tag}: write it as NAME=VALUE")
    return name, value
