"""`outlive events`: tell workflows what has happened."""

from __future__ import annotations

import click

from outlive.cli.edge import Group, ask, json_option, place_option, print_json
from outlive.cli.filters import tag_of
from outlive.cli.values import json_of


@click.group(cls=Group)
def events() -> None:
    """Send events, which start runs of the workflows that have a trigger for them."""


@events.command()
@click.argument("event_type", metavar="TYPE")
@click.argument("data", default="null", metavar="[JSON]")
@click.option("--id", "event_id", help="Which event it is; the same source, type and id again is the same event.")
@click.option("--source", default="", help="Where it comes from.")
@click.option("--header", "headers", multiple=True, metavar="NAME=VALUE", help="Of the runs; may be repeated.")
@place_option
@json_option
def send(
    *, event_type: str, data: str, event_id: str | None, source: str, headers: tuple[str, ...], url: str, as_json: bool
) -> None:
    """Send an event: every workflow that has a trigger for it gets one run, all in one transaction.

    JSON is what has happened; @FILE reads it from a file, - from standard input. The ids of the runs are printed.

    Exit code 1: a workflow has a trigger for it, and could not take it.
    """
    value = json_of("JSON", data)
    said = dict(tag_of("--header", header) for header in headers)
    sent = ask(
        url, lambda engine: engine.events.send(event_type, value, id=event_id, source=source, headers=said or None)
    )
    if as_json:
        print_json(sent)
    else:
        for it in sent.runs:
            click.echo(f"{it.run_id}  {it.workflow}{'' if it.is_new else '  (it was there)'}")
        for refused in sent.refused:
            click.echo(f"workflow {refused.workflow} was not started: {refused.reason}", err=True)
        if not sent.runs and not sent.refused:
            click.echo(f"event {sent.id} fits no trigger", err=True)
    if sent.refused:
        raise click.exceptions.Exit(1)


@events.command()
@place_option
@json_option
def triggers(*, url: str, as_json: bool) -> None:
    """Show which events and webhooks start which workflows."""
    found = ask(url, lambda engine: engine.events.triggers())
    if as_json:
        print_json(found)
        return
    for it in found:
        click.echo(f"{it.workflow}@{it.version}  {' '.join([*it.events, *it.webhooks])}")
    if not found:
        click.echo("no workflow has a trigger", err=True)
