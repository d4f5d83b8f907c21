"""Many seeds, or one: `python -m proof.simulation --seeds 1000` or `--seed 17`."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from proof.simulation.episode import Story, simulate
from proof.simulation.many import Report, simulate_many
from proof.simulation.plan import Plan, draw, from_json, to_json
from proof.simulation.shrink import shrink
from proof.simulation.sometimes import table
from proof.simulation.switches import SWITCHES, without

SOMETIMES_SEEDS_MIN = 1_000
"""With fewer seeds than this, a situation may well never come up."""
TRACE_LINES = 60
PROGRESS_SECONDS = 10.0


def main() -> int:
    """Play, and say what was found."""
    options = _options()
    if options.plan is not None or options.seed is not None:
        plan = draw(options.seed) if options.plan is None else from_json(Path(options.plan).read_text("utf-8"))
        return _play_one(plan, options)
    began = said = time.monotonic()
    known: list[int] = []

    def progress(report: Report) -> None:
        nonlocal said
        for story in report.failures[len(known) :]:
            known.append(story.seed)
            print(f"seed {story.seed} failed: {story.violations[0]}", flush=True)
        if time.monotonic() - said > PROGRESS_SECONDS:
            said = time.monotonic()
            print(f"{report.seeds:,} seeds, {len(report.failures)} failed", flush=True)

    report = simulate_many(options.first, options.seeds, jobs=options.jobs, without=options.without, progress=progress)
    print(table(report.sometimes))
    print(
        f"{report.seeds:,} seeds from {options.first}: {report.runs:,} runs, {report.events:,} events, "
        f"{report.seconds / 3600:,.1f} simulated hours in {time.monotonic() - began:.0f} s"
    )
    if report.failures:
        _tell(report.failures[0], options.without)
        print(f"{len(report.failures)} seeds failed: {', '.join(str(story.seed) for story in report.failures)}")
        return 1
    if report.missing and report.seeds >= SOMETIMES_SEEDS_MIN:
        print(f"no violation, but these never happened: {'; '.join(report.missing)}")
        return 1
    print("no violation")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m proof.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1_000, help="how many seeds to play")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--jobs", type=int, default=1, help="processes at once")
    parser.add_argument("--seed", type=int, help="play this seed only, and tell everything that happens")
    parser.add_argument("--plan", help="play the plan in this file only, and tell everything that happens")
    parser.add_argument(
        "--shrink", action="store_true", help="with --seed or --plan: print the smallest plan that fails"
    )
    parser.add_argument("--without", choices=list(SWITCHES), help="switch a protection off: this must be found")
    return parser.parse_args()


def _play_one(plan: Plan, options: argparse.Namespace) -> int:
    with without(options.without):
        story = simulate(plan)
        if options.shrink and story.violations:
            print(to_json(shrink(plan, lambda smaller: bool(simulate(smaller).violations))))
            return 1
    print("\n".join(story.trace))
    if story.violations:
        _tell(story, options.without, trace_lines=0)
        return 1
    print(f"seed {story.seed}: {story.runs} runs, {story.events} events, no violation")
    return 0


def _tell(story: Story, without_: str | None, *, trace_lines: int = TRACE_LINES) -> None:
    """One failing seed, for people."""
    if trace_lines:
        print(f"\nseed {story.seed} failed; the last things that happened in it:\n")
        print("\n".join(story.trace[-trace_lines:]))
    print("\n" + "\n".join(f"VIOLATION {violation}" for violation in story.violations))
    switch = f" --without {without_}" if without_ else ""
    print(f"\nThe whole story:  python -m proof.simulation --seed {story.seed}{switch}\n")


if __name__ == "__main__":
    sys.exit(main())
