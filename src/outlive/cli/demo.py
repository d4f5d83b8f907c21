"""`outlive demo`."""

from __future__ import annotations

import asyncio
import signal
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from outlive.cli.browser import open_page
from outlive.cli.edge import Mistake

if TYPE_CHECKING:
    from outlive.demo.ledger import Ledger
    from outlive.demo.screen import Screen
    from outlive.demo.story import Scene, Story

EXTRA = "pip install 'outlive[server]' (in a checkout: pip install '.[server]')"
STOP_SECONDS = 1


@click.command()
@click.option("--orders", default=40, show_default=True, type=click.IntRange(1, 500), help="How many orders to take.")
@click.option("--workers", default=2, show_default=True, type=click.IntRange(2, 16), help="How many processes work.")
@click.option("--dir", "folder", type=click.Path(path_type=Path, file_okay=False), help="Where to put the files.")
@click.option("--quiet", is_flag=True, help="Show only the ledger.")
@click.option(
    "--stay/--once",
    "stays",
    default=None,
    help="Show the runs in the dashboard until Ctrl-C, or end after the ledger.  [default: --stay on a terminal]",
)
@click.option("--port", type=click.IntRange(0, 65_535), help="Of the dashboard.  [default: 7717, or the next free]")
@click.option("--browser/--no-browser", default=True, help="Open the dashboard in a browser.  [default: --browser]")
def demo(
    *,
    orders: int,
    workers: int,
    folder: Path | None,
    quiet: bool,
    stays: bool | None,
    port: int | None,
    browser: bool,
) -> None:
    """Kill a worker in the middle of a charge and watch another one finish it.

    Several worker processes share one SQLite file and take some dozens of orders through reservation, confirmation,
    payment and delivery. One of them is killed with -9 while it charges a customer. At the end a ledger proves from
    the outside world, the journals and the results that nothing was lost and nothing done twice. The exit code is 0
    only if that is so.

    On a terminal the dashboard then shows the run that was interrupted, and a page on which you kill workers yourself,
    until Ctrl-C. In a script, or with --once, the command ends after the ledger.
    """
    from outlive.demo.screen import Screen
    from outlive.demo.story import Scene
    from outlive.errors import OutliveError

    is_asked = stays is True
    if stays is None:
        stays = sys.stdin.isatty() and sys.stdout.isatty()
    if is_asked and not _has_server():
        raise Mistake(f"the dashboard needs more packages: {EXTRA}")
    where = folder or Path(tempfile.mkdtemp(prefix="outlive-demo-"))
    scene = Scene(folder=where.resolve(), orders=orders, workers=workers)
    screen = Screen(sys.stdout, is_quiet=quiet)
    try:
        ledger = asyncio.run(_play(scene, screen, stays=stays, port=port, browser=browser))
    except KeyboardInterrupt:
        click.echo(f"\nStopped; no worker is left. The files are in {scene.folder}")
        sys.exit(130)
    except OutliveError as error:
        raise Mistake(str(error)) from error
    sys.exit(0 if ledger.is_right else 1)


def _has_server() -> bool:
    from outlive.errors.program import MissingExtraError
    from outlive.http.server import new_server

    try:
        new_server(None)
    except MissingExtraError:
        return False
    return True


async def _play(scene: Scene, screen: Screen, *, stays: bool, port: int | None, browser: bool) -> Ledger:
    from outlive.demo.story import staged

    async with staged(scene, screen) as story:
        ledger = await story.play()
        click.echo(ledger)
        click.echo(f"\nThe database, what the outside world saw and the workers' logs are in {scene.folder}")
        if stays and not _has_server():
            click.echo(f"To see these runs in the dashboard: {EXTRA}, and start the demo again.")
        elif stays:
            await _stay(story, ledger, port=port, browser=browser)
        else:
            click.echo("To see such runs in the dashboard: outlive demo --stay")
    return ledger


async def _stay(story: Story, ledger: Ledger, *, port: int | None, browser: bool) -> None:
    """Serve the dashboard until Ctrl-C."""
    from outlive.demo.open_shop import OpenShop
    from outlive.demo.site import DemoSite
    from outlive.http import server as serving

    shop = OpenShop(story)
    await shop.open()
    site = DemoSite(story.engine, shop)
    port = serving.free_port(serving.PORT) if port is None else port
    server = serving.new_server(site, port=port, stop_seconds=STOP_SECONDS)

    def stop() -> None:
        site.close()
        server.should_exit = True

    def show(place: str) -> None:
        run = ledger.interrupted[0] if ledger.interrupted else ""
        click.echo(f"\nThe order that was interrupted:  {place}/#/runs/{run}")
        click.echo(f"Kill a worker yourself:          {place}/#/demo")
        click.echo("Ctrl-C ends it.")
        if browser:
            open_page(f"{place}/#/runs/{run}")

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    going_on = asyncio.ensure_future(shop.run())
    try:
        await serving.serve(server, ready=show)
    finally:
        going_on.cancel()
        await asyncio.wait([going_on])
