"""How soon a view of the dashboard is there, how soon a run with 10,000 events is, and how far behind a page is live.

`python -m bench.dashboard` starts a server (`outlive serve`, one process, SQLite) and Debian's chromium, and prints a
line for each figure:

* views: the first contentful paint of a view, when it can be used (its content is drawn and the page answers to a
  task), and how many bytes of script it has loaded, compressed. Each time in a browser that has kept nothing;
* open: the page of a run with 10,003 events (`--events`): when its first rows are drawn, when all events are known,
  its longest task, and the processor time of its main thread and of the server: together they are what it takes where
  nothing else runs, also on a machine that is too busy for the other figures to mean much;
* live: a worker of its own writes 100 events a second for 10 s into the run whose page is open, which has few events at
  first, and then one that has 10,000 already. The lag of an event is from the instant in the journal to the frame in
  which the page shows it. Also: the longest task of the main thread, and how busy it was, beside that of the server.

Times are taken in the page (`performance.now()` begins with the navigation); processor time is that of the page's main
thread. Needs the packages of the development environment: `.venv/bin/python -m bench.dashboard`. `--only open,live`
measures less.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, CDPSession, Page, async_playwright

import outlive
from bench.figures import shown
from bench.http import cpu_seconds, serving
from bench.meter import percentile

ROOT = Path(__file__).parents[1]
EVENTS, ROUNDS = 10_000, 5
RATE, LIVE_SECONDS = 100, 10
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
READY_MS = 30_000
WATCH = """() => {
  const seen = window.seen = {tasks: [], tops: []};
  new PerformanceObserver((list) => { for (const it of list.getEntries()) seen.tasks.push(it.duration); })
    .observe({type: 'longtask', buffered: true});
  const first = (name, is) => {
    if (name in seen || !is()) return;
    seen[name] = null;
    setTimeout(() => { seen[name] = performance.now(); }, 0);
  };
  const says = (text) => [...document.querySelectorAll('.facts dd')].some((it) => it.textContent === text);
  const look = () => {
    first('interactive', () => document.querySelector('main .panel'));
    first('rows', () => document.querySelector('.row-names li'));
    first('all', () => says(window.wantedEvents));
    const top = Number(document.querySelector('[aria-label="events"] tbody td')?.textContent || -1);
    if (top >= 0 && top !== seen.tops.at(-1)?.[1]) seen.tops.push([Date.now(), top]);
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}"""
SCRIPTS = """() => performance.getEntriesByType('resource').filter((it) => it.name.endsWith('.js'))
  .reduce((sum, it) => sum + it.encodedBodySize, 0)"""
PAINT = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime"


@outlive.step
async def tick(number: int) -> int:
    """One event of many."""
    return number


@outlive.step
async def paced_tick(number: int, began: float) -> int:
    """One event of many, at its time."""
    await asyncio.sleep(max(0.0, began + number / RATE - time.time()))
    return number


@outlive.step
async def instant() -> float:
    """When the paced events begin."""
    return time.time()


@outlive.workflow
async def bench_page(before: int, paced: int) -> int:
    """So many events at once, then so many at a pace, each after a signal."""
    for number in range(before):
        await tick(number)
    await outlive.wait_for_signal("go")
    began = await instant()
    for number in range(paced):
        await paced_tick(number, began)
    await outlive.wait_for_signal("end")
    return before + paced


async def fill(url: str, runs: dict[str, tuple[int, int]]) -> None:
    """Start runs, and wait until each has written what it writes before the signal."""
    async with outlive.Engine(url) as engine:
        for run_id, counts in runs.items():
            run = await engine.start(bench_page, *counts, id=run_id)
            async for event in run.follow():
                if event.type == "RunSuspended":
                    break


@contextmanager
def working(url: str) -> Iterator[None]:
    """A worker of the store, in a process of its own."""
    command = [sys.executable, "-m", "outlive.cli", "worker", "bench.dashboard", "--store", url, "--log-level", "error"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=os.environ | {"PYTHONPATH": str(ROOT)}) as process:
        try:
            yield
        finally:
            process.terminate()


class Visit:
    """A page in a browser that has kept nothing."""

    def __init__(self, browser: Browser, url: str, *, events: int = 0) -> None:
        self._browser, self._url, self._events = browser, url, events

    async def __aenter__(self) -> Visit:
        self._context = await self._browser.new_context(viewport={"width": 1280, "height": 820})
        self.page: Page = await self._context.new_page()
        await self.page.add_init_script(f"window.wantedEvents = '{self._events:,}'; ({WATCH})()")
        self._session: CDPSession = await self._context.new_cdp_session(self.page)
        await self._session.send("Performance.enable", {"timeDomain": "threadTicks"})
        await self.page.goto(self._url)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._context.close()

    async def when(self, name: str) -> float:
        """When something was first there, in milliseconds since the navigation."""
        await self.page.wait_for_function(f"() => window.seen.{name} != null", timeout=READY_MS)
        return float(await self.page.evaluate(f"() => window.seen.{name}"))

    async def busy_ms(self) -> float:
        """Processor time of the main thread."""
        found: Any = await self._session.send("Performance.getMetrics")
        return next(float(each["value"]) for each in found["metrics"] if each["name"] == "TaskDuration") * 1000

    async def longest_ms(self) -> float:
        """The longest task of the main thread since this was last asked; 0 if none took 50 ms."""
        await self.page.wait_for_timeout(100)
        found: list[float] = await self.page.evaluate("() => window.seen.tasks.splice(0)")
        return max(found, default=0.0)


async def views(browser: Browser, root: str, run_id: str) -> None:
    """How soon each of some views is there, and what it loads."""
    for route in ("/", "/runs", "/schedules", f"/runs/{run_id}"):
        paints, uses, scripts = [], [], 0
        for _ in range(ROUNDS):
            async with Visit(browser, f"{root}#{route}") as visit:
                uses.append(await visit.when("interactive"))
                await visit.page.wait_for_load_state("networkidle") if route == "/" else None
                paints.append(float(await visit.page.evaluate(PAINT)))
                scripts = int(await visit.page.evaluate(SCRIPTS))
        shown(f"{route}: first contentful paint, median of {ROUNDS}", statistics.median(paints), "ms", "< 300 ms")
        shown(f"{route}: can be used", statistics.median(uses), "ms", "< 600 ms")
        shown(f"{route}: script, compressed", scripts / 1000, "KB", "< 60 KB")


async def opening(browser: Browser, url: str, events: int, server: int) -> None:
    """How soon a long run is there."""
    found: dict[str, list[float]] = {"rows": [], "all": [], "busy": [], "server": [], "longest": []}
    for _ in range(ROUNDS):
        cpu = cpu_seconds(server)
        async with Visit(browser, url, events=events) as visit:
            found["rows"].append(await visit.when("rows"))
            found["all"].append(await visit.when("all"))
            found["busy"].append(await visit.busy_ms())
            found["server"].append((cpu_seconds(server) - cpu) * 1000)
            found["longest"].append(await visit.longest_ms())
    name = f"a run with {events:,} events"
    shown(f"{name}: its first rows, median of {ROUNDS}", statistics.median(found["rows"]), "ms", "< 1,000 ms")
    shown(f"{name}: all of it", statistics.median(found["all"]), "ms", "< 1,000 ms")
    shown(f"{name}: all of it, the slowest", max(found["all"]), "ms", "< 1,000 ms")
    shown(f"{name}: processor time of the page", statistics.median(found["busy"]), "ms", "none")
    shown(f"{name}: processor time of the server", statistics.median(found["server"]), "ms", "none")
    shown(f"{name}: longest task", statistics.median(found["longest"]), "ms", "< 100 ms")


async def living(browser: Browser, engine: outlive.Engine, url: str, run_id: str, before: int, server: int) -> None:
    """How far behind a page is that is open while its run writes 100 events a second."""
    async with Visit(browser, url, events=before) as visit:
        await visit.when("all")
        await visit.longest_ms()
        busy, cpu, began = await visit.busy_ms(), cpu_seconds(server), time.perf_counter()
        await engine.signal(run_id, "go")
        events = [event async for event in _until_rest(engine, run_id, before)]
        last = events[-1].seq
        took = time.perf_counter() - began
        used = await visit.busy_ms() - busy
        of_server = cpu_seconds(server) - cpu
        await visit.page.wait_for_function(f"() => window.seen.tops.at(-1)[1] >= {last}", timeout=READY_MS)
        longest = await visit.longest_ms()
        tops: list[tuple[float, int]] = await visit.page.evaluate("() => window.seen.tops")
    ticks = [(event.seq, event.at.timestamp() * 1000) for event in events if event.type == "StepSucceeded"]
    lags = [next(at for at, top in tops if top >= seq) - at for seq, at in ticks]
    name = f"{len(ticks) / took:.0f} events a second, {before:,} before"
    shown(f"{name}: lag of an event, p50", percentile(lags, 0.5), "ms", "none")
    shown(f"{name}: lag of an event, at most", max(lags), "ms", "< 500 ms")
    shown(f"{name}: lag of the last event", lags[-1], "ms", "< 500 ms")
    shown(f"{name}: longest task", longest, "ms", "< 100 ms")
    shown(f"{name}: main thread of the page", used / took / 10, "%", "none")
    shown(f"{name}: server", of_server / took * 100, "%", "none")


async def _until_rest(engine: outlive.Engine, run_id: str, before: int) -> AsyncIterator[outlive.types.Event]:
    """The events behind the first so many, until the run waits again."""
    async for event in engine.get(run_id).follow(after=before - 1):
        if event.type == "RunSuspended":
            return
        yield event


async def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.dashboard", description=__doc__)
    parser.add_argument("--only", default="views,open,live")
    parser.add_argument("--events", type=int, default=EVENTS)
    given = parser.parse_args()
    wanted = given.only.split(",")
    program = os.environ.get("OUTLIVE_CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        raise SystemExit("no chromium to start; on Debian: apt-get install chromium, or set OUTLIVE_CHROMIUM")
    paced = RATE * LIVE_SECONDS
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:{Path(folder) / 'bench.db'}"
        await fill(url, {"long": (given.events, paced), "short": (20, paced)})
        async with async_playwright() as playwright, outlive.Engine(url, worker=False) as engine:
            browser = await playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
            with serving(url) as (port, server):
                root = f"http://127.0.0.1:{port}/"
                counts = {run_id: await _count(engine, run_id) for run_id in ("long", "short")}
                if "views" in wanted:
                    await views(browser, root, "short")
                if "open" in wanted:
                    await opening(browser, f"{root}#/runs/long", counts["long"], server)
                if "live" in wanted:
                    with working(url):
                        for run_id, count in reversed(counts.items()):
                            await living(browser, engine, f"{root}#/runs/{run_id}", run_id, count, server)
            await browser.close()


async def _count(engine: outlive.Engine, run_id: str) -> int:
    count = 0
    async for event in engine.get(run_id).follow():
        count += 1
        if event.type == "RunSuspended":
            break
    return count


if __name__ == "__main__":
    asyncio.run(main())
