"""What a trial prints at its end: the counts, a table of what each process used, each check, and how to do it again."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator

from proof.live.checks import CHECKS, MAIL_WINDOW_SECONDS, bursts_before_neighbours, mails_at_most
from proof.live.evidence import Evidence, Timing
from proof.live.growth import LIFE_SECONDS_MIN, LIMITS, grown, lives, pings_by_kind, quantile, thirds
from proof.live.trial import Trial

COMPLAINTS_SHOWN = 8


def report(it: Evidence, trial: Trial) -> tuple[list[str], bool]:
    """The lines to print, and whether everything holds."""
    verdicts: list[str] = []
    is_right = True
    for check in CHECKS:
        complaints = list(check(it))
        is_right = is_right and not complaints
        promise = (check.__doc__ or "").strip().splitlines()[0]
        verdicts.append(f"  {'ok   ' if not complaints else 'WRONG'}  {promise}")
        verdicts += [f"           {complaint}" for complaint in complaints[:COMPLAINTS_SHOWN]]
        if len(complaints) > COMPLAINTS_SHOWN:
            verdicts.append(f"           ... and {len(complaints) - COMPLAINTS_SHOWN} more")
    last = "Nothing was lost, nothing was done twice, nothing grew." if is_right else "SOMETHING IS WRONG."
    where = [] if is_right else [f"Files: {trial.folder}"]
    return [*counts(it), *processes(it), *store(it), *times(it), *verdicts, "", last, *where, trial.again], is_right


def counts(it: Evidence) -> Iterator[str]:
    """How much happened."""
    ends = Counter(end.status for run, end in it.ends.items() if run.startswith("invoice-"))
    yield f"  orders      {len(it.orders):,}: {', '.join(f'{n:,} {status}' for status, n in sorted(ends.items()))}"
    charged = sum(entry["kind"] == "charge" for entry in it.bank)
    yield f"  outside     {charged:,} charges, {len(it.mails):,} mails, {len(it.bookings):,} bookings"
    yield (
        f"  besides     {len(it.imported):,} lines of {len(it.imports)} files, {len(it.letters)} letters, "
        f"{len(it.decisions)} answers to people, {len(it.ticks)} ticks, {it.deleted:,} runs deleted"
    )
    yield (
        f"  readers     {it.readers_ended} read to the end, cut off {it.readers_cut} times; dashboards had "
        f"{it.dashboard_events:,} events and {it.overviews:,} overviews; {it.repeated} requests were repeated"
    )
    if shares := bursts_before_neighbours(it):
        yield (
            f"  limits      {len(shares)} bursts, {statistics.median(shares):.0%} of each began before the next order; "
            f"at most {mails_at_most(it)} mails within {MAIL_WINDOW_SECONDS:.0f} s"
        )
    yield f"  faults      {', '.join(f'{kind} {n}' for kind, n in sorted(it.faults.items()))}"
    if it.stop_seconds:
        typical, worst = statistics.median(it.stop_seconds), max(it.stop_seconds)
        yield f"  stops       {len(it.stop_seconds)}, {typical:.1f} s typically, {worst:.1f} s at worst"


def processes(it: Evidence) -> Iterator[str]:
    """What each process used that lived long enough, with what it gained in a minute."""
    seen = lives(it.samples)
    long = [life for life in seen if life.seconds >= LIFE_SECONDS_MIN]
    yield f"  processes   {len(seen)}, of which {len(long)} lived for {LIFE_SECONDS_MIN:.0f} s or more; (+ in a minute)"
    heads = "".join(f"{limit.figure:>18}" for limit in LIMITS)
    yield f"    {'role':<10} {'life':>7} {'CPU':>6}{heads}"
    for life in long:
        last, first = life.samples[-1], life.samples[0]
        share = (last.cpu_seconds - first.cpu_seconds) / life.seconds
        cells = ""
        for limit in LIMITS:
            each, _ = grown(life, limit.of)
            now = f"{limit.of(last):.0f} ({each:+.2f})"
            cells += f"{now:>18}"
        yield f"    {life.role:<10} {life.seconds:>5.0f} s {share:>6.1%}{cells}"


def store(it: Evidence) -> Iterator[str]:
    """How large the store was."""
    if it.sizes:
        first, last = it.sizes[0], it.sizes[-1]
        most = max(size.mb for size in it.sizes)
        connections = max(size.connections for size in it.sizes)
        yield (
            f"  store       {first.mb:.1f} MB at first, {most:.1f} at most, {last.mb:.1f} at the end with "
            f"{last.runs:,} runs; at most {connections} connections"
        )


def times(it: Evidence) -> Iterator[str]:
    """How long things took while nothing was struck."""
    pings = {f"ping {kind}": timings for kind, timings in sorted(pings_by_kind(it).items())}
    for what, timings in (pings | {"small run": it.probes}).items():
        if timings:
            yield f"  {what:<11} {_times(timings)}"


def _times(timings: list[Timing]) -> str:
    seconds = [each.seconds for each in timings]
    first, last = thirds(timings)
    return (
        f"{len(seconds)}: p50 {statistics.median(seconds) * 1000:.0f} ms, p95 {quantile(seconds, 0.95) * 1000:.0f} ms, "
        f"max {max(seconds) * 1000:.0f} ms; first third {first * 1000:.0f} ms, last third {last * 1000:.0f} ms"
    )
