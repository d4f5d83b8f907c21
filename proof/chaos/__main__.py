"""`python -m proof.chaos`: a storm over a real fleet, then the proof that it did no harm."""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from proof.chaos.checks import ALL_CHECKS
from proof.chaos.disk import Disk, LimitedFiles, own_disk
from proof.chaos.evidence import StormEvidence, observe_storm
from proof.chaos.situation import curiosities, faults, situations
from proof.chaos.storm import Storm
from proof.chaos.trial import StormTrial
from proof.kill.places import Place, postgres, sqlite
from proof.kill.report import report

DRAIN_SECONDS = 180.0
STORES = ("sqlite", "postgres")
SERVER = {"max_wal_size": "128MB", "shared_buffers": "32MB"}


@dataclass(frozen=True)
class Site:
    """Where a trial has its store, and the disk under it, if that can be filled."""

    place: Place
    disk: Disk | None


@contextmanager
def site(store: str, folder: Path) -> Iterator[Site]:
    """An empty store, on a disk of its own if we may have one."""
    with own_disk() as (disk, root):
        if store == "postgres":
            # Without a disk of its own the server has the disk of the machine, which nobody will fill.
            with postgres(folder, data=None if disk is None else root / "data", settings=SERVER) as place:
                yield Site(place, disk)
            return
        with sqlite(root) as place:
            try:
                yield Site(place, disk or LimitedFiles())
            finally:
                shutil.copytree(root, folder / "store", dirs_exist_ok=True)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m proof.chaos", description=__doc__)
    parser.add_argument("--store", choices=[*STORES, "both"], default="both")
    parser.add_argument("--kills", type=int, default=300, help="how many processes to kill; the rest is in proportion")
    parser.add_argument("--server-kills", type=int, help="how often to kill the server of the store (kills / 8)")
    parser.add_argument("--down-seconds", type=float, default=60.0, help="how long the one long outage lasts")
    parser.add_argument("--seed", type=int, help="the programs, the strikes and their order; random unless given")
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--dir", type=Path, help="keep the files here; otherwise only those of a failed trial are kept")
    parser.add_argument("--drain-seconds", type=float, default=DRAIN_SECONDS, help="how long all runs may take to end")
    parser.add_argument("--quiet", action="store_true", help="print only the report")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a trial on each store; the exit code is 0 only if every check holds on all of them."""
    given = parse(arguments)
    stores = STORES if given.store == "both" else (given.store,)
    verdicts = [run(store, given) for store in stores]  # Also the second one if the first is wrong.
    return 0 if all(verdicts) else 1


def run(store: str, given: argparse.Namespace) -> bool:
    """One trial on one store; whether everything holds."""
    folder = Path(tempfile.mkdtemp(prefix="outlive-chaos-")) if given.dir is None else given.dir.resolve() / store
    folder.mkdir(parents=True, exist_ok=True)
    tell: Callable[[str], None] = (lambda _: None) if given.quiet else (lambda text: print(text, flush=True))
    with site(store, folder) as found:
        trial = StormTrial(
            folder=folder,
            url=found.place.url,
            store=store,
            seed=random.randrange(1_000_000) if given.seed is None else given.seed,
            kills=given.kills,
            workers=given.workers,
            server_kills=_server_kills(given) if found.place.server is not None else 0,
            down_seconds=given.down_seconds,
        )
        print(f"seed {trial.seed}, {trial.workers} workers on {trial.url}", flush=True)
        if found.disk is None:
            print("its disk cannot be filled here: that needs root, on Linux", flush=True)
        evidence = observe_storm(
            Storm(trial, tell, found.place.server, disk=found.disk), drain_seconds=given.drain_seconds
        )
    lines, is_right = report(trial, evidence, checks=ALL_CHECKS, more=tables(evidence))
    print("\n".join(lines), flush=True)
    if is_right and given.dir is None:
        shutil.rmtree(folder)
    return is_right


def tables(it: StormEvidence) -> Iterator[str]:
    """What was done, and what came of it."""
    for title, counts in (("done", faults(it)), ("came of it", situations(it)), ("besides", curiosities(it))):
        yield f"  {title}"
        yield from (f"    {times:>7,}  {what}" for what, times in counts.items())


def _server_kills(given: argparse.Namespace) -> int:
    return max(1, given.kills // 8) if given.server_kills is None else int(given.server_kills)


if __name__ == "__main__":
    sys.exit(main())
