"""`outlive audit`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from outlive.cli.edge import Group, ask, counted, json_option, place_option, print_json, print_table

if TYPE_CHECKING:
    from outlive.client.audit_log import AuditEntry


@click.group(cls=Group, invoke_without_command=True)
@click.pass_context
def audit(ctx: click.Context) -> None:
    """Show who did what, and prove that nothing of it was changed."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@audit.command("list")
@place_option
@json_option
@click.option("--actor", help="Only what this person or key did.")
@click.option("--verb", help="Only this verb, for example cancel.")
@click.option("--target", help="Only what was done to this run, workflow, schedule, queue, flow or key.")
@click.option("--limit", type=click.IntRange(1, 1_000), default=50, show_default=True, help="At most so many.")
@click.option("--after", metavar="NUMBER", help="Only rows before this number: the last one of the page before.")
def list_actions(*, url: str, as_json: bool, **wanted: Any) -> None:
    """Show actions, the newest first."""
    found = ask(url, lambda engine: engine.audit.list(**wanted))
    if as_json:
        print_json([_plain(entry) for entry in found])
        return
    if not found:
        click.echo("the audit log has no such row")
        return
    rows = [
        [
            str(entry.number),
            entry.at.strftime("%Y-%m-%d %H:%M:%S"),
            entry.actor,
            ("denied: " if entry.is_denied else "") + entry.verb,
            entry.target or "-",
            entry.via or "-",
            entry.reason,
        ]
        for entry in found
    ]
    print_table(["number", "at (utc)", "actor", "verb", "target", "via", "reason"], rows)


@audit.command()
@place_option
@json_option
@click.option("--since", metavar="HEAD", help="What an earlier check printed as head: rows cut off since are noticed.")
def verify(*, url: str, as_json: bool, since: str | None) -> None:
    """Check every row against the one before it; exit code 1 if something was changed or is missing."""
    check = ask(url, lambda engine: engine.audit.verify(since=since))
    if as_json:
        print_json({"rows": check.rows, "first": check.first, "head": check.head, "problems": check.problems})
    else:
        for problem in check.problems:
            click.echo(problem)
        state = "is whole" if check.is_whole else "is not whole"
        click.echo(f"the audit log {state}: {counted(check.rows, 'row')}, head {check.head or '-'}")
    if not check.is_whole:
        sys.exit(1)


def _plain(entry: AuditEntry) -> dict[str, Any]:
    return {
        "number": entry.number,
        "at": entry.at,
        "actor": entry.actor,
        "verb": entry.verb,
        "target": entry.target,
        "reason": entry.reason,
        "key": entry.key,
        "via": entry.via,
        "address": entry.address,
        "denied": entry.is_denied,
        "hash": entry.hash,
    }
