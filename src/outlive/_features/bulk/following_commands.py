"""Commands for many runs: they hand a verb to workers, and follow how far it comes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from outlive.cli.edge import counted, print_json

if TYPE_CHECKING:
    from outlive._features.bulk.workflow import BulkVerb
    from outlive.engine import Engine

LOOK_SECONDS = 0.25


async def has_worker(engine: Engine) -> bool:
    """Whether a live worker can carry out an operation."""
    from outlive._features.bulk.workflow import BULK
    from outlive._kernel.model import definition_key

    needed = definition_key(BULK.name, BULK.version)
    return any(worker.status == "live" and needed in worker.built_in for worker in await engine.workers.list())


async def do_in_background(engine: Engine, verb: BulkVerb, done: str, *, as_json: bool, **options: Any) -> int:
    """Let workers do it to all that fit, and follow how far they come; Ctrl-C ends only the following.

    Args:
        done: in the words of the answer: `retried`.

    Returns how many runs have refused.
    """
    import asyncio

    from outlive._kernel.values.run import ENDED

    operation = await engine.bulk.start(verb, **options)
    click.echo(f"operation {operation.id}; it goes on without this command: outlive runs operations", err=True)
    shown = ""
    while (progress := await operation.progress()).status not in ENDED:
        line = f"{progress.done:,} {done}, {progress.refused:,} refused"
        if line != shown and sys.stderr.isatty():
            click.echo(line, err=True)
        shown = line
        await asyncio.sleep(LOOK_SECONDS)
    refusals = [{"id": it.id, "error": it.message} for it in progress.refusals]
    if as_json:
        print_json({"operation": progress.id, "done": progress.done, "refused": progress.refused, "refusals": refusals})
    else:
        for refusal in refusals:
            click.echo(f"run {refusal['id']}: {refusal['error']}", err=True)
        also = f", {progress.refused:,} refused" if progress.refused else ""
        click.echo(f"{counted(progress.done, 'run')} {done}{also}", err=True)
    return progress.refused
