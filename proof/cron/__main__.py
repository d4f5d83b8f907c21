"""`python -m proof.cron`: all IANA zones, 400 expressions, ten years, against an implementation of our own.

Around every change of the clocks of every zone, and in one range without a change, every minute is compared, for every
expression. `--whole 20` also compares so many random pairs of zone and expression over all the years. Zones whose
clocks show the same throughout are compared once. It ends with code 1 if there is a difference.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import datetime
from functools import partial
from zoneinfo import available_timezones

from proof.cron.compare import Difference, compare_whole, compare_zone, groups, year
from proof.cron.expressions import expressions

SHOWN_MAX = 40
PROGRESS = 20


def main() -> int:
    """Compare, and print what is different."""
    parser = argparse.ArgumentParser(prog="python -m proof.cron", description=__doc__)
    parser.add_argument("--first", type=int, default=2010, help="the first year")
    parser.add_argument("--years", type=int, default=10)
    parser.add_argument("--expressions", type=int, default=400)
    parser.add_argument("--zones", default="", help="by comma; all unless given")
    parser.add_argument("--whole", type=int, default=0, help="random pairs that are compared over all the years")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    first, last = year(given.first), year(given.first + given.years)
    names = sorted(given.zones.split(",")) if given.zones else sorted(available_timezones() - {"localtime", "Factory"})
    clocks, texts = groups(names, first, last), expressions(given.expressions, given.seed)
    print(
        f"{len(names)} zones, {len(clocks)} different clocks, {len(texts)} expressions, {first.year} to {last.year - 1}"
    )
    rng = random.Random(given.seed)
    pairs = [(rng.choice(names), rng.choice(texts)) for _ in range(given.whole)]
    look = partial(compare_zone, expressions=texts, first=first, last=last, seed=given.seed)
    with ProcessPoolExecutor(given.jobs) as pool:
        found: list[Difference] = []
        ranges = 0
        for number, (count, differences) in enumerate(pool.map(look, clocks, chunksize=1), 1):
            ranges, found = ranges + count, found + differences
            if number % PROGRESS == 0:
                print(f"{number} of {len(clocks)} clocks: {len(found)} differences", file=sys.stderr, flush=True)
        whole = (
            pool.map(compare_whole, *zip(*pairs, strict=True), [first] * len(pairs), [last] * len(pairs))
            if pairs
            else []
        )
        for differences in whole:
            found += differences
    return report(found, ranges, len(pairs))


def look_at_pair(pair: tuple[str, str], *, first: datetime, last: datetime) -> list[Difference]:
    """Compare a zone and an expression over all the years."""
    return compare_whole(*pair, first, last)


def report(found: Sequence[Difference], ranges: int, pairs: int) -> int:
    """Print what is different; the exit code."""
    for difference in found[:SHOWN_MAX]:
        print(difference)
    print(f"{ranges:,} ranges and {pairs} pairs over all years: {len(found)} differences")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
