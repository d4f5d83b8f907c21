"""`python -m proof.storm.drills`: measure what a fleet does when it loses a worker, and when it does not."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence

from proof.storm.drills.beat import beat
from proof.storm.drills.failover import failover
from proof.storm.drills.orphans import orphans

LEASE_SECONDS = 10.0
"""The default of an engine."""
BEAT_LEASE_SECONDS = 3.0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line; without a drill all of them are done."""
    parser = argparse.ArgumentParser(prog="python -m proof.storm.drills", description=__doc__)
    parser.add_argument("drill", choices=["all", "failover", "orphans", "beat"], nargs="?", default="all")
    parser.add_argument("--runs", type=int, help="of one worker (failover: 1,000; others: 10,000)")
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--lease-seconds", type=float, help="10 unless given; beat: 3")
    parser.add_argument(
        "--how", choices=["all", "kill", "freeze", "term"], default="all", help="failover: what happens"
    )
    return parser.parse_args(arguments)


def lines(given: argparse.Namespace) -> Iterator[str]:
    """Do the drills, and tell what they found."""
    lease = given.lease_seconds or LEASE_SECONDS
    if given.drill in ("all", "failover"):
        for how in ("kill", "freeze", "term") if given.how == "all" else (given.how,):
            yield from failover(runs=given.runs or 1_000, workers=given.workers, lease_seconds=lease, how=how)
    if given.drill in ("all", "orphans"):
        yield from orphans(runs=given.runs or 10_000, workers=given.workers, lease_seconds=lease)
    if given.drill in ("all", "beat"):
        yield from beat(runs=given.runs or 10_000, lease_seconds=given.lease_seconds or BEAT_LEASE_SECONDS)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what was found as it is found."""
    for line in lines(parse(arguments)):
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
