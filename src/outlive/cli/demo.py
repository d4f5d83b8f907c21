"""`outlive demo`."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

import click


@click.command()
@click.option("--orders", default=40, show_default=True, type=click.IntRange(1, 500), help="How many orders to take.")
@click.option("--workers", default=2, show_default=True, type=click.IntRange(2, 16), help="How many processes work.")
@click.option("--dir", "folder", type=click.Path(path_type=Path, file_okay=False), help="Where to put the files.")
@click.option("--quiet", is_flag=True, help="Show only the ledger.")
def demo(*, orders: int, workers: int, folder: Path | None, quiet: bool) -> None:
    """Kill a worker in the middle of a charge and watch another one finish it.

    Several worker processes share one SQLite file and take some dozens of orders through reservation, confirmation,
    payment and delivery. One of them is killed with -9 while it charges a customer. At the end a ledger proves from
    the outside world, the journals and the results that nothing was lost and nothing done twice. The exit code is 0
    only if that is so.
    """
    from outlive.demo.screen import Screen
    from outlive.demo.story import Scene, tell

    where = folder or Path(tempfile.mkdtemp(prefix="outlive-demo-"))
    scene = Scene(folder=where.resolve(), orders=orders, workers=workers)
    try:
        ledger = asyncio.run(tell(scene, Screen(sys.stdout, is_quiet=quiet)))
    except KeyboardInterrupt:
        click.echo(f"\nStopped; no worker is left. The files are in {scene.folder}")
        sys.exit(130)
    click.echo(ledger)
    click.echo(f"\nThe database, what the outside world saw and the workers' logs are in {scene.folder}")
    sys.exit(0 if ledger.is_right else 1)
