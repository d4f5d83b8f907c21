"""`outlive runs start` and `start-many`: runs of workflows by their names, for the workers of a store."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from outlive.cli import completing as complete
from outlive.cli.advice import as_typed
from outlive.cli.edge import REFUSED, json_option, open_engine, place_option, print_json, run, say
from outlive.cli.edge import ask as ask_engine
from outlive.cli.starting import options_of, start_options
from outlive.cli.values import json_of, structs_in

if TYPE_CHECKING:
    from outlive.http.wire.runs import StartRun


@click.command()
@click.argument("workflow", metavar="WORKFLOW", shell_complete=complete.workflow_names)
@click.argument("arguments", default="", metavar="[JSON]")
@click.option("--version", type=click.IntRange(1), help="Of the workflow; the newest unless given.")
@start_options()
@place_option
@json_option
def start(*, workflow: str, arguments: str, version: int | None, url: str, as_json: bool, **given: Any) -> None:
    """Start a run of a workflow by its name, for the workers of the store, and print its id.

    For example: outlive runs start order '{"id": 7}' --id order-7

    JSON is an object of arguments by name, or a list of them; @FILE reads it from a file, - from standard input.
    `outlive runs tail ID` follows the run. `outlive run` starts a workflow of your own program, and is its worker too.
    """
    values = json_of("JSON", arguments) if arguments else None
    options = options_of(given)
    handle = ask_engine(url, lambda engine: engine.start(workflow, values, version=version, **options))
    say(handle.id, {"id": handle.id}, as_json=as_json)


@click.command("start-many")
@click.argument("starts", metavar="FILE")
@place_option
@json_option
def start_many(*, starts: str, url: str, as_json: bool) -> None:
    """Start a run for each line of FILE (- for standard input), for the workers of the store, and print their ids.

    A line is one start as `POST /bulk/start` takes it:

    {"workflow": "order", "arguments": {"id": 7}, "id": "order-7", "queue": "orders"}

    A thousand lines are one commit. If a line cannot work, nothing of its thousand is started, and the command ends.
    The same file with the same ids again starts nothing twice.

    Exit code 0: each line has its run. 1: a line cannot work, or an id is taken by a run that will not do.
    """
    from outlive._kernel.client.start_many import STARTS_MAX
    from outlive.http.wire.runs import StartRun

    read = structs_in(starts, StartRun)
    found = run(_start_all(url, [read[at : at + STARTS_MAX] for at in range(0, len(read), STARTS_MAX)]))
    for line, run_id, refused in found:
        if refused:
            click.echo(f"line {line}: {refused}", err=True)
        elif not as_json:
            click.echo(run_id)
    if as_json:
        print_json([{"line": line, "id": run_id, "refused": refused or None} for line, run_id, refused in found])
    if any(refused for _, _, refused in found):
        sys.exit(REFUSED)


async def _start_all(url: str, portions: list[list[tuple[int, StartRun]]]) -> list[tuple[int, str, str]]:
    """Start them a thousand at a time: the line, the id and the refusal of each."""
    from outlive._kernel.client.message_start import NamedStart
    from outlive.errors.run import StartsRefusedError

    found: list[tuple[int, str, str]] = []
    async with open_engine(url) as engine:
        for portion in portions:
            wanted = [{"start": NamedStart(it.workflow, it.arguments, it.version), **it.options()} for _, it in portion]
            refused: dict[int, Any] = {}
            try:
                ids = [handle.id for handle in await engine.start_many(wanted)]  # type: ignore[arg-type]
            except StartsRefusedError as error:
                ids, refused = [*error.ids], error.refused
            found += [
                (line, run_id, as_typed(refused[at]) if at in refused else "")
                for at, ((line, _), run_id) in enumerate(zip(portion, ids, strict=True))
            ]
    return found
