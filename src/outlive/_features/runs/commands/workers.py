"""`outlive workers`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from outlive._features.runs.commands.workflows import taken_by
from outlive.cli.edge import Group, ask, json_option, place_option, print_json, print_table
from outlive.cli.paint import span

if TYPE_CHECKING:
    from outlive._kernel.values.worker import Worker


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
    found = ask(url, lambda engine: engine.workers.list())
    if as_json:
        print_json(found)
        return
    if not found:
        click.echo("no worker is on this store")
        return
    rows = [
        [
            worker.name,
            _status(worker),
            _lease(worker),
            f"{worker.runs:,}",
            "all" if worker.queues is None else ", ".join(worker.queues),
            _workflows(worker),
        ]
        for worker in found
    ]
    print_table(["worker", "status", "lease", "runs", "queues", "workflows"], rows)


@workers.command()
@place_option
@json_option
def steps(*, url: str, as_json: bool) -> None:
    """List the steps that live workers run, of Python and remote ones, with what each takes.

    A flow calls each by its name here. QUEUE/STEP is a remote step, which a program in any language takes.
    """
    found = ask(url, lambda engine: engine.workers.steps())
    if as_json:
        print_json(found)
        return
    if not found:
        click.echo("no live worker has said which steps it runs", err=True)
        return
    rows = [[it.name, f"{it.workers:,}", taken_by(it.arguments, is_remote=bool(it.queue))] for it in found]
    print_table(["step", "workers", "arguments"], rows)


def _status(worker: Worker) -> str:
    """`dead`: its process has died on this machine."""
    from outlive._kernel.lease.process import is_gone

    return "dead" if worker.status == "live" and is_gone(worker.process) else worker.status


def _lease(worker: Worker) -> str:
    """When it runs out, in words."""
    if worker.expires_in is None:
        return worker.lease
    left = worker.expires_in.total_seconds()
    words = f"runs out in {span(left)}" if left > 0 else f"ran out {span(-left)} ago"
    return words if worker.lease == "store" else f"{worker.lease}, {words}"


def _workflows(worker: Worker) -> str:
    if worker.fault:
        return f"its row is damaged: {worker.fault}"
    return ", ".join(worker.definitions) or "-"
