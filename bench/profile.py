"""`python -m bench.profile W2`: where Outlive's time goes, thread by thread, as text.

The event loop and the writer thread work at the same time and wait for different things, so one profile of
both would be a sum that nobody spends. Each thread therefore has a cProfile of its own: the loop's is
switched on around the workload, and every other thread carries one from its first call to its last. cProfile
makes calls dearer than they are, small ones most of all: read the order of the lines, not the seconds.

From Python 3.12 on, cProfile sees the whole process and allows one profiler at a time; there the loop's
profile may contain the calls of the other threads, and the report says so.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import io
import pstats
import sys
import tempfile
import threading
from pathlib import Path

from bench.database import fresh
from bench.drive import drive
from bench.meter import Figures, Order
from bench.runner import ROOT
from bench.workload import WORKLOADS

LINES_MAX = 45
IS_PER_THREAD = sys.version_info < (3, 12)
PROFILED = ("W1", "W2", "W3", "W4", "W7")

thread_profiles: list[tuple[str, cProfile.Profile]] = []


def run_profiled(thread: threading.Thread) -> None:
    """`Thread.run`, with a profile around it."""
    profile = cProfile.Profile()
    thread_profiles.append((thread.name, profile))
    profile.enable()
    try:
        plain_run(thread)
    finally:
        profile.disable()


plain_run = threading.Thread.run


async def profile_loop(order: Order, profile: cProfile.Profile) -> Figures:
    """The workload, with the event-loop thread under the profiler while it runs."""
    import outlive
    from bench import outlive_side

    async with outlive.Engine(order.database) as engine:
        profile.enable()
        try:
            return await drive(order, outlive_side.OutliveSystem(order, engine))
        finally:
            profile.disable()


def text_of(title: str, profile: cProfile.Profile) -> str:
    """The dearest calls, by own time and then by time with everything below them."""
    parts = [f"==== {title}"]
    for order in ("tottime", "cumulative"):
        printed = io.StringIO()
        statistics = pstats.Stats(profile, stream=printed)
        statistics.strip_dirs().sort_stats(order).print_stats(LINES_MAX)
        parts.append(printed.getvalue().strip())
    return "\n\n".join(parts)


def main() -> None:
    """Profile one workload and write the text."""
    parser = argparse.ArgumentParser(prog="python -m bench.profile")
    parser.add_argument("workload", choices=PROFILED)
    parser.add_argument("--scale", type=float, default=0.3)
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "out")
    given = parser.parse_args()
    # As in a measured process: the working tree, installed or not.
    sys.path.insert(0, str(ROOT / "src"))
    workload = next(workload for workload in WORKLOADS if workload.name == given.workload)
    n = workload.size("outlive", given.scale)
    assert n is not None
    if IS_PER_THREAD:
        threading.Thread.run = run_profiled  # type: ignore[method-assign, assignment]
    profile = cProfile.Profile()
    with fresh("sqlite", directory=Path(tempfile.gettempdir()), postgres_url=None) as url:
        order = Order(workload=given.workload, phase="run", n=n, database=url)
        figures = asyncio.run(profile_loop(order, profile))

    name = "event loop" if IS_PER_THREAD else "all threads: this Python's cProfile cannot tell them apart"
    parts = [f"{given.workload}, n={n:,}, under the profiler: {figures}", text_of(name, profile)]
    parts += [text_of(f"thread {name}", own) for name, own in thread_profiles if own.getstats()]
    given.out.mkdir(parents=True, exist_ok=True)
    path = given.out / f"profile-{given.workload}.txt"
    path.write_text("\n\n\n".join(parts) + "\n", encoding="utf-8")
    print(path.read_text(encoding="utf-8"))
    print("written:", path)


if __name__ == "__main__":
    main()
