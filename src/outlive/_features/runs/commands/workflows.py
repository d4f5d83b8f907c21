"""`outlive workflows`: what can be started on a store."""

from __future__ import annotations

from typing import Any

import click

from outlive.cli.edge import Group, ask, json_option, place_option, print_json, print_table


@click.group(cls=Group)
def workflows() -> None:
    """Show what workers can run."""


@workflows.command("list")
@place_option
@json_option
def list_(*, url: str, as_json: bool) -> None:
    """List what workers can run, in every version: the arguments, and how many workers have it."""
    found = ask(url, lambda engine: engine.workflows.list())
    if as_json:
        print_json(found)
        return
    if not found:
        click.echo("no worker has described a workflow in this store", err=True)
        return
    print_table(
        ["workflow", "version", "workers", "arguments"],
        [[it.name, str(it.version), f"{it.workers:,}", taken_by(it.arguments)] for it in found],
    )


def taken_by(arguments: dict[str, Any] | None, *, is_remote: bool = False) -> str:
    """The arguments that a schema describes, in a line. That of a remote step comes from its worker, and may be any
    JSON."""
    if arguments is None:
        return "-"
    properties, required = arguments.get("properties"), arguments.get("required")
    if not isinstance(properties, dict):
        return _type(arguments) if is_remote else "none"
    needed = required if isinstance(required, list) else []
    shown = [f"{name}: {_type(each)}" + ("" if name in needed else "?") for name, each in properties.items()]
    return ", ".join(shown) or "none"


def _type(schema: Any) -> str:
    """A type of JSON Schema in a word."""
    if not isinstance(schema, dict):
        return "any"
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    kind = schema.get("type", "any")
    return " or ".join(map(str, kind)) if isinstance(kind, list) else str(kind)
