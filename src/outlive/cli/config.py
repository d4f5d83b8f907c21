"""`outlive config`: what is set, and where."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from outlive.cli.edge import Group, counted, json_option, print_json, print_table, settings_with

if TYPE_CHECKING:
    from outlive.config.settings import Settings

HIDDEN = "***"
UNSEEN = ("env",)
"""Keys of `[flows]` whose values people put secrets into."""


@click.group(cls=Group)
def config() -> None:
    """Show the settings and where each comes from, and find all mistakes in them.

    A flag wins over an OUTLIVE_... variable, and that over the file: outlive.toml, or [tool.outlive] of pyproject.toml,
    of this folder or the nearest one above it; or the file that OUTLIVE_CONFIG names.
    """


@config.command()
@click.option("--given", "only_given", is_flag=True, help="Leave out what has its default.")
@json_option
def show(*, only_given: bool, as_json: bool) -> None:
    """Show every setting, its value, and where that comes from. Passwords are hidden."""
    settings = settings_with({})
    rows = [row for row in _rows(settings) if not only_given or row["from"] != "default"]
    if as_json:
        print_json({"file": settings.file or None, "settings": rows})
        return
    if rows:
        print_table(["setting", "value", "from"], [[row["setting"], _shown(row["value"]), row["from"]] for row in rows])
    if not settings.file:
        click.echo("no outlive.toml, and no pyproject.toml with [tool.outlive], in this folder or above it")


@config.command()
@json_option
def check(*, as_json: bool) -> None:
    """Find all mistakes in the configuration, each with its place.

    Exit code 0: there is none. 1: there are some. 2: the command is wrong.
    """
    from outlive.engine.configured import read_configuration
    from outlive.errors import InvalidSettingsError

    try:
        settings = read_configuration()
    except InvalidSettingsError as error:
        if as_json:
            print_json({"problems": [problem._asdict() for problem in error.problems]})
        else:
            for problem in error.problems:
                click.echo(problem)
        sys.exit(1)
    if as_json:
        print_json({"problems": []})
    else:
        click.echo(f"{settings.file or 'no file'}: {counted(len(settings.given), 'setting')}, no mistake")


def _rows(settings: Settings) -> Iterator[dict[str, Any]]:
    from outlive.config.setting import BY_NAME, EACH, SETTINGS

    for setting in SETTINGS:
        if EACH not in setting.name:
            yield {
                "setting": setting.name,
                "value": setting.shown(settings[setting.name]),
                "from": settings.place(setting.name),
            }
    for name, given in settings.given.items():
        if name not in BY_NAME:
            yield {"setting": name, "value": given.value, "from": given.place}
    for path, value in _leaves(settings.flows, ("flows",)):
        yield {"setting": ".".join(path), "value": value, "from": settings.file}


def _leaves(table: Mapping[str, Any], above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in table.items():
        path = (*above, key)
        if isinstance(value, dict) and value:
            yield from _leaves(value, path)
        else:
            yield path, HIDDEN if any(part in UNSEEN for part in path) else value


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
