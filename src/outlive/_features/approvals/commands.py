"""`outlive approvals`, `outlive approve` and `outlive reject`: what runs ask people for, and what people decide."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from outlive.cli import completing as complete
from outlive.cli.edge import Group, ask, by_option, json_option, person, place_option, print_json, print_table, say
from outlive.cli.filters import filter_options, filters_of
from outlive.cli.paint import span
from outlive.cli.values import json_of

if TYPE_CHECKING:
    from outlive._kernel.values.approval import ApprovalRequest
    from outlive.engine import Engine


@click.group(cls=Group)
def approvals() -> None:
    """Show what runs ask people for."""


@approvals.command("list")
@filter_options
@click.option("--assignee", metavar="WHO", help="Only what this person, or this group, may decide.")
@click.option("--run", "run_id", metavar="ID", help="All that this run has asked for, with what was decided.")
@click.option("--limit", type=click.IntRange(1, 1_000), default=100, show_default=True, help="Of at most so many runs.")
@click.option("--after", metavar="CURSOR", help="The next page: what the page before said.")
@place_option
@json_option
def list_(
    *,
    assignee: str | None,
    run_id: str | None,
    limit: int,
    after: str | None,
    url: str,
    as_json: bool,
    **filters: Any,
) -> None:
    """List open requests, of the oldest runs first; or all requests of one run."""
    wanted = filters_of(filters)
    if run_id is not None:
        page = ask(url, lambda engine: engine.approvals.list(run_id))
    else:
        page = ask(url, lambda engine: engine.approvals.list(assignee=assignee, limit=limit, after=after, **wanted))
    if as_json:
        print_json({"approvals": page, "next": page.next})
        return
    if not page:
        click.echo("no run asks for approval", err=True)
        return
    print_table(["run", "approval", "status", "age", "assignees", "title"], [_row(entry) for entry in page])
    if page.next is not None:
        click.echo(f"... and more; --after {page.next} shows the next page", err=True)


def _row(entry: ApprovalRequest) -> list[str]:
    status = entry.status if entry.decision is None else f"{entry.status} by {entry.decision.by}"
    age = span(entry.age.total_seconds())
    return [entry.run_id, entry.name, status, age, ", ".join(entry.assignees) or "-", entry.title or "-"]


def _decision(command: Callable[..., None]) -> Callable[..., None]:
    """The options of a decision."""
    for option in (
        json_option,
        place_option,
        click.option("--request", metavar="ID", help="Which request; the oldest open one of this name unless given."),
        click.option("--comment", default="", help="A comment for the run and for the audit log."),
        click.option("--form", metavar="JSON", help="The form, filled in; @FILE reads it from a file."),
        by_option,
        click.argument("name"),
        click.argument("run_id", metavar="RUN", shell_complete=complete.run_ids),
    ):
        command = option(command)
    return command


@click.command()
@_decision
def approve(**given: Any) -> None:
    """Approve what a run asks for.

    It is durable when the command returns. The first decision is the only one. Exit code 1 if another one was first.
    """
    _decide("approved", lambda engine, *args, **options: engine.approvals.approve(*args, **options), **given)


@click.command()
@_decision
def reject(**given: Any) -> None:
    """Reject what a run asks for.

    It is durable when the command returns. The first decision is the only one. Exit code 1 if another one was first.
    """
    _decide("rejected", lambda engine, *args, **options: engine.approvals.reject(*args, **options), **given)


def _decide(
    done: str,
    verb: Callable[..., Any],
    *,
    run_id: str,
    name: str,
    by: str,
    form: str | None,
    comment: str,
    request: str | None,
    url: str,
    as_json: bool,
) -> None:
    filled = None if form is None else json_of("--form", form)
    who = (person(url, by) or None) if by else by

    async def decide(engine: Engine) -> Any:
        return await verb(engine, run_id, name, by=who, form=filled, comment=comment, request=request)

    decision = ask(url, decide)
    was = "approved" if decision.approved else "rejected"
    plain = {"id": run_id, "approval": name, "decision": was, "by": decision.by, "is_first": decision.is_first}
    if decision.is_first:
        say(f"approval {name} of run {run_id} is {done} by {decision.by}", plain, as_json=as_json)
        return
    if as_json:
        print_json(plain)
    if was != done:
        raise click.ClickException(f"approval {name} of run {run_id} was {was} by {decision.by} before")
    if not as_json:
        click.echo(f"approval {name} of run {run_id} was {was} by {decision.by} before")
