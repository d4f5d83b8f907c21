"""`python -m proof.kill`: kill, recover, kill again, then prove that nothing was lost or done twice."""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from proof.kill.evidence import Evidence, observe
from proof.kill.places import PLACES, Place
from proof.kill.report import report
from proof.kill.supervisor import Supervisor, Trial

DRAIN_SECONDS = 120.0
KILLS_UNBOUNDED = 1_000_000


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m proof.kill", description=__doc__)
    parser.add_argument("--store", choices=sorted(PLACES), default="sqlite")
    parser.add_argument("--kills", type=int, help="how many processes to kill (200 unless --minutes is given)")
    parser.add_argument("--server-kills", type=int, help="how often to kill the server of the store (kills / 10)")
    parser.add_argument("--minutes", type=float, help="stop killing after this time")
    parser.add_argument("--seed", type=int, help="the programs and the choice of victims; random unless given")
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--dir", type=Path, help="keep the files here; otherwise only those of a failed trial are kept")
    parser.add_argument("--drain-seconds", type=float, default=DRAIN_SECONDS, help="how long all runs may take to end")
    parser.add_argument("--quiet", action="store_true", help="print only the report")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one trial; the exit code is 0 only if every check holds."""
    given = parse(arguments)
    folder = given.dir or Path(tempfile.mkdtemp(prefix="outlive-kill-"))
    folder.mkdir(parents=True, exist_ok=True)
    tell: Callable[[str], None] = (lambda _: None) if given.quiet else (lambda text: print(text, flush=True))
    with PLACES[given.store](folder.resolve()) as place:
        trial = trial_of(given, folder.resolve(), place)
        print(f"seed {trial.seed}, {trial.workers} workers on {trial.url}", flush=True)
        evidence = Evidence(seed=trial.seed)
        observe(Supervisor(trial, tell, place.server), evidence, drain_seconds=given.drain_seconds)
        lines, is_right = report(trial, evidence)
    print("\n".join(lines), flush=True)
    if is_right and given.dir is None:
        shutil.rmtree(folder)
    return 0 if is_right else 1


def trial_of(given: argparse.Namespace, folder: Path, place: Place) -> Trial:
    """What the command line asks for."""
    kills = given.kills or (200 if given.minutes is None else KILLS_UNBOUNDED)
    return Trial(
        folder=folder,
        url=place.url,
        store=given.store,
        seed=random.randrange(1_000_000) if given.seed is None else given.seed,
        kills=kills,
        workers=given.workers,
        minutes=given.minutes,
        server_kills=0 if place.server is None else kills // 10 if given.server_kills is None else given.server_kills,
    )


if __name__ == "__main__":
    sys.exit(main())
