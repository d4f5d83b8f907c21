"""`outlive check`: finds what breaks the replay of workflows, before it is run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from outlive.cli.app import no_file
from outlive.cli.edge import REFUSED, Mistake, counted, json_option, print_json


@click.command()
@click.argument("places", metavar="FILE|FOLDER...", nargs=-1, required=True)
@json_option
def check(*, places: tuple[str, ...], as_json: bool) -> None:
    """Find what breaks the replay of workflows, in their source.

    Nothing is imported or run. Found are the time of the machine, chance, files, sockets and variables of the
    environment, threads, sets whose order is used, and calls of steps without `await`: in workflows, in routers of
    machines, and in the plain functions of the same file that they call. A line that ends with
    `# outlive: ignore` is left out.

    Exit code 1: something was found.
    """
    from outlive._kernel.define.determinism import check_file

    found = []
    for file in _files_of(places):
        try:
            found += check_file(file)
        except (SyntaxError, UnicodeDecodeError) as error:
            raise Mistake(f"{file} cannot be read as Python: {error}") from None
    if as_json:
        print_json([it._asdict() for it in found])
    else:
        for finding in found:
            click.echo(str(finding))
        click.echo(f"{counted(len(found), 'finding')}", err=True)
    if found:
        sys.exit(REFUSED)


def _files_of(places: tuple[str, ...]) -> Iterator[Path]:
    for place in places:
        path = Path(place)
        if path.is_dir():
            yield from sorted(it for it in path.rglob("*.py") if not any(part.startswith(".") for part in it.parts))
        elif path.is_file():
            yield path
        else:
            raise Mistake(no_file(path))
