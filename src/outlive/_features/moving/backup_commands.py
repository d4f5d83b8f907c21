"""`outlive backup`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from outlive.cli.edge import counted, json_option, place_of, print_json, run, store_option

CLEAR = "\r\x1b[K"
MEBIBYTE = 1024 * 1024


@click.command()
@click.argument("target", metavar="DEST", type=click.Path(path_type=Path))
@store_option
@click.option("--no-check", "is_unchecked", is_flag=True, help="Do not check the copy as `outlive fsck` would.")
@json_option
def backup(*, target: Path, url: str, is_unchecked: bool, as_json: bool) -> None:
    """Copy a store into a file while workers go on, and prove that the copy is whole.

    DEST is a new SQLite file. All of the copy is from one moment. It has its name only when it is whole and on the
    disk; a backup that is killed leaves DEST.<number>.unfinished behind. A copy of a PostgreSQL store is a SQLite file
    too: `outlive move sqlite:DEST postgresql://...` brings it back to an empty schema.

    Exit code 0: DEST is a whole copy. 1: it could not be made. 2: the command is wrong.
    """
    from outlive.engine.backup import back_up

    says = sys.stderr.isatty() and not as_json

    def tell(line: str) -> None:
        if says:
            click.echo(f"{CLEAR}{line}", nl=False, err=True)

    made = run(back_up(place_of(url), target, check=not is_unchecked, said=tell))
    if says:
        click.echo(CLEAR, nl=False, err=True)
    if as_json:
        print_json(made._asdict())
        return
    checked = "not checked" if made.trees is None else f"{counted(made.trees, 'tree')}, whole"
    click.echo(f"{made.path}: {made.size / MEBIBYTE:,.1f} MiB, {checked}")
