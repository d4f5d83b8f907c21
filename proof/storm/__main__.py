"""`python -m proof.storm kill`, `chaos` or `limits`: a storm over a real fleet, then the proof that it did no harm."""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from proof.storm.evidence import Evidence, observe
from proof.storm.fault import CHAOS, MIXES
from proof.storm.places import STORES, place_of
from proof.storm.report import report
from proof.storm.storm import Storm
from proof.storm.trial import Trial

DRAIN_SECONDS = 180.0
KILLS_UNBOUNDED = 1_000_000


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m proof.storm", description=__doc__)
    parser.add_argument(
        "mix", choices=sorted(MIXES), help="kill: only kills and freezes; chaos: everything; limits: queues"
    )
    parser.add_argument("--store", choices=[*STORES, "both"], default="sqlite")
    parser.add_argument("--kills", type=int, help="how many processes to kill (kill: 200, others: 300)")
    parser.add_argument("--server-kills", type=int, help="how often to kill the server of the store")
    parser.add_argument("--minutes", type=float, help="stop after this time")
    parser.add_argument("--down-seconds", type=float, default=60.0, help="chaos: how long the one long outage lasts")
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
    mix = MIXES[given.mix]
    folder = Path(tempfile.mkdtemp(prefix="outlive-storm-")) if given.dir is None else given.dir.resolve() / store
    folder.mkdir(parents=True, exist_ok=True)
    tell: Callable[[str], None] = (lambda _: None) if given.quiet else (lambda text: print(text, flush=True))
    kills = given.kills or (mix.kills if given.minutes is None else KILLS_UNBOUNDED)
    server_kills = given.server_kills
    if server_kills is None:
        server_kills = max(1, int(kills * mix.server_share)) if mix.server_share else 0
    with place_of(store, folder, fills_disk=mix is CHAOS) as place:
        trial = Trial(
            folder=folder,
            url=place.url,
            store=store,
            seed=random.randrange(1_000_000) if given.seed is None else given.seed,
            kills=kills,
            workers=given.workers,
            mix=mix,
            minutes=given.minutes,
            server_kills=0 if place.server is None else server_kills,
            down_seconds=given.down_seconds,
        )
        print(f"seed {trial.seed}, {trial.workers} workers on {trial.url}", flush=True)
        if mix is CHAOS and place.disk is None:
            print("its disk cannot be filled here: that needs root, on Linux", flush=True)
        evidence = Evidence(trial)
        observe(Storm(trial, place, tell), evidence, drain_seconds=given.drain_seconds)
    lines, is_right = report(evidence)
    print("\n".join(lines), flush=True)
    if is_right and given.dir is None:
        shutil.rmtree(folder)
    return is_right


if __name__ == "__main__":
    sys.exit(main())
