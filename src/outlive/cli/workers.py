"""`outlive workers`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from outlive.cli.edge import Group, ask, json_option, place_option, print_json, print_table

if TYPE_CHECKING:
    from outlive._store.contract import WorkerInfo

MICROSECONDS = 1_000_000
SPANS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


@click.group(cls=Group)
def workers() -> None:
    """Show who works on a store, who is alive, and how much each owns."""


@workers.command("list")
@place_option
@json_option
def list_(*, url: str, as_json: bool) -> None:
    """Show who works on a store, who is alive, and how much each owns.

    Sessions that are live or still own runs. One that is `gone` has ended or let its lease run out; one that is `dead`
    has died on this machine, and its neighbours are about to notice. Others take over what they own.
    """
    found, now_at = ask(url, lambda engine: engine.view.workers())
    if as_json:
        print_json([_plain(worker, now_at) for worker in found])
        return
    if not found:
        click.echo("no worker is on this store")
        return
    rows = [
        [worker.name, _state(worker), _lease(worker, now_at), f"{worker.runs:,}", _workflows(worker)]
        for worker in found
    ]
    print_table(["worker", "state", "lease", "runs", "workflows"], rows)


def _state(worker: WorkerInfo) -> str:
    from outlive._lease.process import is_gone

    if not worker.is_live:
        return "gone"
    return "dead" if is_gone(worker.process) else "live"


def _lease(worker: WorkerInfo, now_at: int) -> str:
    """When it runs out, in words."""
    if worker.lease == "none":
        return "none"
    left = (worker.expires_at - now_at) / MICROSECONDS
    words = f"runs out in {span(left)}" if left > 0 else f"ran out {span(-left)} ago"
    return f"{worker.lease}, {words}" if worker.lease else words


def span(seconds: float) -> str:
    """A time in the largest unit that fits."""
    unit, size = next(((unit, size) for unit, size in SPANS if seconds >= size), SPANS[-1])
    return f"{seconds / size:.0f} {unit}"


def _workflows(worker: WorkerInfo) -> str:
    if worker.fault:
        return f"its row is damaged: {worker.fault}"
    return ", ".join(_own(worker)) or "-"


def _own(worker: WorkerInfo) -> list[str]:
    """What users defined, and not what Outlive adds."""
    return [name for name in worker.definitions if not name.startswith("outlive.")]


def _plain(worker: WorkerInfo, now_at: int) -> dict[str, object]:
    has_end = worker.lease != "none"
    return {
        "id": worker.id,
        "name": worker.name,
        "state": _state(worker),
        "process": worker.process or None,
        "lease": worker.lease or "store",
        "started_at": worker.started_at / MICROSECONDS,
        "expires_at": worker.expires_at / MICROSECONDS if has_end else None,
        "expires_in": (worker.expires_at - now_at) / MICROSECONDS if has_end else None,
        "runs": worker.runs,
        "definitions": _own(worker),
        "fault": worker.fault or None,
    }
