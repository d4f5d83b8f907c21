"""`outlive keys`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from outlive.cli.edge import Group, ask, json_option, place_option, print_json, print_table, say
from outlive.cli.filters import tag_of
from outlive.cli.values import seconds_of

if TYPE_CHECKING:
    from outlive._features.security.key_values import ApiKey


@click.group(cls=Group)
def keys() -> None:
    """Create, list and revoke the API keys of a store."""


@keys.command()
@place_option
@json_option
@click.argument("name")
@click.option(
    "--scope",
    type=click.Choice(["viewer", "operator", "admin", "worker"]),
    default="viewer",
    show_default=True,
    help="What it may do.",
)
@click.option("--workflow", "workflows", multiple=True, metavar="NAME", help="Only runs of this workflow; repeatable.")
@click.option(
    "--tag",
    "tags",
    multiple=True,
    metavar="NAME=VALUE",
    help="Only runs with this tag, and what it starts; repeatable.",
)
@click.option("--queue", "queues", multiple=True, metavar="NAME", help="Only tasks of this queue; repeatable.")
@click.option("--expires", metavar="SPAN", help="After how long it is valid no longer: 90d, 12h, 30m.")
def create(
    *,
    url: str,
    as_json: bool,
    name: str,
    scope: str,
    workflows: tuple[str, ...],
    tags: tuple[str, ...],
    queues: tuple[str, ...],
    expires: str | None,
) -> None:
    """Make a key for NAME, and print its secret: it can be seen only now."""
    span = None if expires is None else seconds_of("--expires", expires)
    marks = dict(tag_of("--tag", tag) for tag in tags)
    bounds: dict[str, Any] = {"workflows": workflows or None, "tags": marks or None, "queues": queues or None}
    made = ask(url, lambda engine: engine.keys.create(name, scope=scope, expires=span, **bounds))
    if as_json:
        print_json(made)
        return
    click.echo(made.secret)
    click.echo(f"key {made.key.id} for {name} ({scope}); its secret is not kept, and cannot be shown again", err=True)


@keys.command("list")
@place_option
@json_option
def list_keys(*, url: str, as_json: bool) -> None:
    """Show all keys, the newest first; what they are made of cannot be shown."""
    found = ask(url, lambda engine: engine.keys.list())
    if as_json:
        print_json(found)
        return
    if not found:
        click.echo("this store has no keys; `outlive keys create NAME` makes one")
        return
    rows = [
        [
            key.id,
            key.name,
            key.scope,
            key.status,
            _bounds(key),
            _day(key.expires_at) or "never",
            _day(key.last_used_at) or "never",
        ]
        for key in found
    ]
    print_table(["id", "name", "scope", "state", "for", "expires", "last used"], rows)


@keys.command()
@place_option
@click.argument("key_id", metavar="ID")
@click.option("--reason", default="", help="Why, for the audit log.")
@json_option
def revoke(*, url: str, key_id: str, reason: str, as_json: bool) -> None:
    """Let a key be valid no longer, on all servers and at once."""
    key = ask(url, lambda engine: engine.keys.revoke(key_id, reason=reason))
    say(f"key {key.id} of {key.name} is revoked", key, as_json=as_json)


def _bounds(key: ApiKey) -> str:
    """The workflows, tags or queues that it is for."""
    if key.queues is not None:
        return "queues " + ", ".join(key.queues)
    marks = [f"{name}={value}" for name, value in key.tags.items()]
    return ", ".join([*(key.workflows or ()), *marks]) or "all"


def _day(at: Any) -> str:
    return "" if at is None else at.strftime("%Y-%m-%d %H:%M")
