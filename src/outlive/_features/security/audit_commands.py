"""`outlive audit`."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from outlive.cli.edge import (
    HTTP,
    Group,
    Mistake,
    ask,
    counted,
    json_option,
    place_option,
    print_json,
    print_table,
    settings_with,
)
from outlive.cli.values import seconds_of

if TYPE_CHECKING:
    from outlive._features.security.audit_values import AuditCheck
    from outlive.engine import Engine


@click.group(cls=Group)
def audit() -> None:
    """Show who did what, and prove that nothing of it was changed."""


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
        print_json(found)
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
@click.option(
    "--since",
    "--head",
    "since",
    metavar="HEAD",
    help="What an earlier check printed as head: rows cut off, pruned or written again since are noticed.",
)
@click.option("--keep", metavar="SPAN", help="How long workers keep rows: 365d. As retention.audit unless given.")
@click.option(
    "--key-file",
    metavar="FILE",
    help="The key that workers seal the log with. As retention.audit_key_file unless given.",
)
def verify(*, url: str, as_json: bool, since: str | None, keep: str | None, key_file: str | None) -> None:
    """Check every row against the one before it, and what was pruned; exit code 1 if something is wrong."""
    span = None if keep is None else seconds_of("--keep", keep)
    if url.startswith(HTTP):
        if key_file is not None:
            raise Mistake("--key-file is for a store: a server has a key of its own, and takes none")
        check = ask(url, lambda engine: engine.audit.verify(since=since, keep=span))
    else:
        check = ask(url, partial(_verify, since=since, keep=span, key_file=key_file))
    if as_json:
        print_json(check)
    else:
        if check.pruned:
            at = "" if check.pruned_at is None else f", the last of them at {check.pruned_at:%Y-%m-%d %H:%M} UTC"
            after = f"; {check.pruned_since:,} of them after the earlier check" if since else ""
            click.echo(f"{counted(check.pruned, 'row')} from the beginning were pruned{at}{after}")
        if check.sealed:
            click.echo(f"the key proves the rows up to {check.sealed}")
        for problem in check.problems:
            click.echo(problem)
        state = "is whole" if check.is_whole else "is not whole"
        click.echo(f"the audit log {state}: {counted(check.rows, 'row')}, head {check.head or '-'}")
    if not check.is_whole:
        sys.exit(1)


async def _verify(engine: Engine, *, since: str | None, keep: float | None, key_file: str | None) -> AuditCheck:
    """A check of a store, by the settings that workers have too."""
    from outlive._kernel.model.retention import read_audit_key

    settings = settings_with({})
    file = key_file or settings["retention.audit_key_file"]
    return await engine.audit.verify(
        since=since,
        keep=settings["retention.audit"] if keep is None else keep,
        key=None if file is None else read_audit_key(file),
    )
