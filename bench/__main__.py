"""`python -m bench`: every workload on every system, in turns, then the table, the JSON and the picture.

The systems take turns within each round (Outlive, DBOS, raw, then the next workload), because the machine is
rarely alone: a slow minute then falls on all of them, and the ratios hold even where the rates do not.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bench.bulk import measure_all as measure_bulk
from bench.bursts import measure_all as measure_bursts
from bench.database import postgres
from bench.figures import SHOWN
from bench.finding import RUNS, print_curves
from bench.http import measure_all
from bench.machine import machine_facts
from bench.plot import draw
from bench.queues import measure_batches
from bench.replays import measure_all as measure_replays
from bench.report import Line, failures, header, import_line, lines_of, number, table, write_json
from bench.results import measure_all as measure_results
from bench.runner import ROOT, Bench, Sample, import_milliseconds
from bench.workload import SYSTEMS, WORKLOADS, Workload

ON_STORES: Mapping[str, Callable[..., None]] = {
    "results": measure_results,
    "bursts": measure_bursts,
    "bulk": measure_bulk,
    "batches": measure_batches,
    "replays": measure_replays,
}
"""What is measured of Outlive alone, on each store."""
OTHERS = {"import", "find", "http", *ON_STORES}


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Outlive, DBOS and the bare driver.")
    parser.add_argument("--only", default="", help="workloads, by comma: W1,W3,cost," + ",".join(sorted(OTHERS)))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies every count")
    parser.add_argument("--stores", default="sqlite,postgresql", help="which of them, by comma")
    parser.add_argument(
        "--postgres-url", help="a database of a role that may create databases; a private server unless given"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "out")
    parser.add_argument("--dir", type=Path, default=Path(tempfile.gettempdir()), help="for databases")
    parser.add_argument("--runs-max", type=int, default=RUNS[-1], help="among how many runs to find some, at most")
    parser.add_argument("--skip-rival", action="store_true", help="leave DBOS out")
    parser.add_argument("--systems", default=",".join(SYSTEMS), help="which of them, by comma")
    return parser.parse_args()


def chosen_workloads(only: str) -> list[Workload]:
    """The workloads asked for, in their usual order."""
    wanted = set(filter(None, only.split(",")))
    unknown = wanted - {workload.name for workload in WORKLOADS} - OTHERS
    if unknown:
        raise SystemExit(f"no such workload: {', '.join(sorted(unknown))}")
    return [workload for workload in WORKLOADS if not wanted or workload.name in wanted]


def take_all(
    bench: Bench, workloads: Sequence[Workload], *, systems: Sequence[str], stores: Sequence[str], rounds: int
) -> list[Sample]:
    """Every measurement, systems in turn, with a word on each as it comes in."""
    samples = []
    plan = (
        (turn, store, workload, system)
        for turn in range(1, rounds + 1)
        for store in stores
        for workload in workloads
        for _ in range(workload.repeats)
        for system in systems
    )
    for turn, store, workload, system in plan:
        sample = bench.take(workload, system=system, store=store, turn=turn)
        if sample is not None:
            samples.append(sample)
            print(progress(sample), file=sys.stderr, flush=True)
    return samples


def progress(sample: Sample) -> str:
    """One measurement in one line."""
    place = f"round {sample.turn} {sample.store} {sample.workload} {sample.system} n={sample.n:,}"
    if sample.failure is not None:
        return f"{place}: FAILED {sample.failure.splitlines()[-1]}"
    numbers = {key: value for key, value in sample.figures.items() if isinstance(value, int | float)}
    return f"{place}: {' '.join(f'{key}={number(value)}' for key, value in numbers.items())}"


def main() -> None:
    """Measure, print, write."""
    given = parse_arguments()
    workloads = chosen_workloads(given.only)
    systems = [s for s in given.systems.split(",") if not (given.skip_rival and s == "dbos")]
    stores = given.stores.split(",")
    given.out.mkdir(parents=True, exist_ok=True)
    given.dir.mkdir(parents=True, exist_ok=True)
    facts = machine_facts(given.dir)
    heading = header(facts, rounds=given.rounds, scale=given.scale)
    print(heading, end="\n\n", flush=True)
    if facts["file_system"] in {"tmpfs", "ramfs"}:
        print("WARNING: these databases lie in memory, where a commit is free: use --dir.", file=sys.stderr)

    with postgres(given.postgres_url, is_needed="postgresql" in stores) as postgres_url:
        bench = Bench(directory=given.dir, postgres_url=postgres_url, scale=given.scale)
        samples = take_all(bench, workloads, systems=systems, stores=stores, rounds=given.rounds)
        if "outlive" in systems and (not given.only or "find" in given.only.split(",")):
            sizes = [size for size in RUNS if size <= given.runs_max]
            print_curves(stores, sizes, directory=given.dir, postgres_url=postgres_url)
        for name, measure in ON_STORES.items():
            if "outlive" in systems and (not given.only or name in given.only.split(",")):
                measure(stores, directory=given.dir, postgres_url=postgres_url)
    if "outlive" in systems and "sqlite" in stores and (not given.only or "http" in given.only.split(",")):
        measure_all(directory=given.dir, runs=given.runs_max, scale=given.scale)
    lines: list[Line] = []
    import_samples_ms: list[float] = []
    for store in stores:
        lines += (of_store := list(lines_of(samples, workloads, store=store)))
        print(f"{store}\n{table(of_store)}\n")
    if "outlive" in systems and (not given.only or "import" in given.only.split(",")):
        import_samples_ms = import_milliseconds("outlive")
        lines.append(import_line(import_samples_ms))
        print(table(lines[-1:]), end="\n\n")
    print("\n".join(f"FAILED {failure}" for failure in failures(samples)))

    written = [given.out / "result.json"]
    write_json(written[0], facts=facts, samples=samples, import_samples_ms=import_samples_ms, lines=lines, shown=SHOWN)
    for store in stores:
        own = [line for line in lines if line.medians.store == store]
        written += draw(own, directory=given.out, name=f"result-{store}")
    print("written:", *written)


if __name__ == "__main__":
    main()
