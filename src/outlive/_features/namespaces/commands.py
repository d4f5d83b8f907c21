"""`outlive namespaces`: the tenants of a store, and how much each may start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from outlive.cli.edge import (
    Group,
    counted,
    json_option,
    place_of,
    print_json,
    print_table,
    run,
    tenant_url,
    whole_store_option,
)

if TYPE_CHECKING:
    from outlive._features.namespaces.quotas import Usage


@click.group(cls=Group)
def namespaces() -> None:
    """Show the tenants of a store, and how much each may start."""


@namespaces.command("list")
@whole_store_option
@json_option
def list_(*, url: str, as_json: bool) -> None:
    """Show every namespace of the store, and what it uses of its quota."""
    found = run(_usages(url))
    if as_json:
        print_json([_plain(name, usage) for name, usage in found.items()])
        return
    rows = [
        [
            name,
            _part(usage.open_runs, usage.quota.open_runs),
            _part(usage.starts_in_a_minute, usage.quota.starts_per_minute),
        ]
        for name, usage in found.items()
    ]
    print_table(["namespace", "open runs", "starts in a minute"], rows)


@namespaces.command()
@click.argument("name")
@whole_store_option
@click.option("--open-runs", type=click.IntRange(0), help="How many runs may be open; no limit unless given.")
@click.option("--starts-per-minute", type=click.IntRange(0), help="How many may be started; no limit unless given.")
@json_option
def quota(*, name: str, url: str, open_runs: int | None, starts_per_minute: int | None, as_json: bool) -> None:
    """Say how much the callers of a namespace may start from now on."""
    run(_set(url, name, {"open_runs": open_runs, "starts_per_minute": starts_per_minute}))
    said = [counted(open_runs, "open run")] if open_runs is not None else []
    said += [f"{starts_per_minute:,} starts a minute"] if starts_per_minute is not None else []
    if as_json:
        print_json({"namespace": name, "open_runs": open_runs, "starts_per_minute": starts_per_minute})
    else:
        click.echo(f"{name} may have {' and '.join(said) or 'as much as it likes'}")


async def _usages(url: str) -> dict[str, Usage]:
    from outlive._features.namespaces.quotas import usage_in
    from outlive.cli.edge import open_store
    from outlive.engine.namespace import list_namespaces

    found: dict[str, Usage] = {}
    for name in await list_namespaces(url):
        async with open_store(tenant_url(url, name)) as store:
            found[name] = await usage_in(store)
    return found


async def _set(url: str, name: str, quota: dict[str, int | None]) -> None:
    from outlive.engine import Engine

    place_of(tenant_url(url, name))
    async with Engine(url, worker=False, namespace=name) as engine:
        await engine.quotas.set(**quota)


def _part(used: int | None, most: int | None) -> str:
    return "no limit" if most is None else f"{used:,} of {most:,}"


def _plain(name: str, usage: Usage) -> dict[str, Any]:
    return {
        "namespace": name,
        "open_runs": usage.open_runs,
        "open_runs_max": usage.quota.open_runs,
        "starts_in_a_minute": usage.starts_in_a_minute,
        "starts_per_minute_max": usage.quota.starts_per_minute,
    }
