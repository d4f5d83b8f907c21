"""`outlive runs`: find runs, see what they wait for and what they did, and help runs that do not get on.

Exit codes are those of all commands; 3 says that a run which is followed is parked.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import click

from outlive._features.approvals.commands import approve, reject
from outlive._features.retention.commands import purge
from outlive._features.runs.commands.act import cancel, change, fork, operations, pause, resume, retry, skip
from outlive._features.runs.commands.files import export, import_
from outlive._features.runs.commands.messages import ask as ask_run
from outlive._features.runs.commands.messages import signal, signal_many
from outlive._features.runs.commands.show import show
from outlive._features.runs.commands.starting import start, start_many
from outlive._features.runs.commands.stuck import list_stuck
from outlive._features.runs.commands.tail import tail
from outlive._features.runs.commands.view import TITLES, plain_run, row_of
from outlive.cli import completing as complete
from outlive.cli.advice import as_typed
from outlive.cli.edge import Group, Mistake, ask, json_option, place_option, print_json, print_table, say
from outlive.cli.filters import filter_options, filters_of


@click.group(cls=Group)
def runs() -> None:
    """Find runs, see why they do not move, and act on one or on all that fit.

    One run is named by its id. Many are chosen by filters: such a command says first which runs it would take, and
    does it with --yes.

    Exit codes: 0, done; 1, refused, or one of several runs has refused; 2, the command is wrong; 3, a run that is
    followed is parked.
    """


@click.command()
@click.argument("run_id", metavar="ID", shell_complete=complete.run_ids)
@place_option
@json_option
def why(*, run_id: str, url: str, as_json: bool) -> None:
    """Say in one sentence what a run waits for, or how it ended."""
    sentence = as_typed(ask(url, lambda engine: engine.get(run_id).why()))
    say(sentence, {"id": run_id, "why": sentence}, as_json=as_json)


@click.command()
@click.argument("run_id", metavar="ID", shell_complete=complete.run_ids)
@place_option
@json_option
def steps(*, run_id: str, url: str, as_json: bool) -> None:
    """List the steps of a run that run now, the oldest first, with their arguments.

    The worker of the run tells of steps that have lasted for some seconds, and of arguments that are short.
    """
    import msgspec

    found = ask(url, lambda engine: engine.steps(run_id, arguments=True))
    if as_json:
        print_json({"id": run_id, "steps": msgspec.to_builtins(found)})
        return
    now = datetime.now(UTC)
    for step in found:
        whose = f"{step.run_id}: " if step.run_id != run_id else ""
        click.echo(whose + step.describe(now))
        if step.progress is not None:
            click.echo(f"  progress {msgspec.json.encode(step.progress).decode()}")
        for name, value in (step.arguments or {}).items():
            click.echo(f"  {name} = {msgspec.json.encode(value).decode()}")
    if not found:
        click.echo("no step is known to run now; `outlive runs why` says what the run waits for")


@click.command("list")
@filter_options
@click.option("--stuck", "is_stuck", is_flag=True, help="Only runs that do not move by themselves, and why.")
@click.option("--children", "has_children", is_flag=True, help="Child runs too.")
@click.option("--oldest-first", is_flag=True, help="The oldest first; else the newest.")
@click.option("--limit", type=click.IntRange(1, 1_000), default=50, show_default=True, help="At most so many.")
@click.option("--after", metavar="CURSOR", help="The next page: what the page before said.")
@click.option("--ids", "only_ids", is_flag=True, help="Only the ids, one on each line: for xargs.")
@place_option
@json_option
def list_(
    *,
    is_stuck: bool,
    has_children: bool,
    oldest_first: bool,
    limit: int,
    after: str | None,
    only_ids: bool,
    url: str,
    as_json: bool,
    **filters: Any,
) -> None:
    """List runs, the newest first, one on each line.

    The last column is the reason of a parked run, the error of a failed one, and what a waiting one waits for.

    With --stuck the third column says why a run does not move. `parked`: it stopped with a reason, and `outlive runs
    resume`, `skip` or `cancel` decide. `interrupted`: it has lost its worker and waits for another. `damaged`: its row
    in the store cannot be read, and `outlive fsck --repair` writes it again from the journal. `undefined`: it is due,
    and no live worker has its workflow in its version. `untaken`: it is due, and no live worker that has its workflow
    takes from its queue.
    """
    if is_stuck:
        if filters_of(filters) or has_children or oldest_first:
            raise Mistake("--stuck is about all runs of the store: give no filter, --children or --oldest-first")
        list_stuck(url, limit=limit, after=after, only_ids=only_ids, as_json=as_json)
        return
    wanted: dict[str, Any] = {**filters_of(filters), "limit": limit, "after": after, "roots_only": not has_children}
    wanted["order"] = "created_at" if oldest_first else "-created_at"
    page = ask(url, lambda engine: engine.list(**wanted))
    if as_json:
        print_json({"runs": [plain_run(run) for run in page], "next": page.next})
        return
    if only_ids:
        for run in page:
            click.echo(run.id)
    elif page:
        now = datetime.now(UTC)
        print_table(TITLES, [row_of(run, now=now) for run in page])
    else:
        click.echo("no run fits", err=True)
    if page.next is not None:
        click.echo(f"... and more; --after {page.next} shows the next page", err=True)


@click.command()
@filter_options
@click.option("--children", "has_children", is_flag=True, help="Child runs too.")
@click.option(
    "--by",
    type=click.Choice(["status", "workflow", "queue"]),
    default="status",
    show_default=True,
    help="What runs have in common that are counted together.",
)
@place_option
@json_option
def count(*, has_children: bool, by: Any, url: str, as_json: bool, **filters: Any) -> None:
    """Count runs by status, workflow or queue, up to 10,000 of each; `10,000+` is more."""
    wanted = filters_of(filters)
    found = ask(url, lambda engine: engine.count_by(by, **wanted, roots_only=not has_children))
    if as_json:
        print_json(found)
    elif found:
        print_table([by, "runs"], [[group, str(number)] for group, number in found.items()])
    else:
        click.echo("no run fits", err=True)


for command in (
    *(list_, count, show, why, steps, tail),
    *(start, start_many),
    *(signal, signal_many, ask_run, approve, reject),
    *(cancel, change, retry, resume, pause, fork, skip, operations),
    *(purge, export, import_),
):
    runs.add_command(command)
