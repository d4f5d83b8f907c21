"""One table: what each system did, how far apart they are, where the limit lies, and what is reached.

Every number is the median of its rounds. "Ratio" says how many times better Outlive is than DBOS, whichever
way the figure runs, so above 1 is good; where the two sizes differ and the figure grows with size, it is
taken per run.
A row without a verdict has no target, or lacks the measurement its target needs.
"""

from __future__ import annotations

import dataclasses
import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.figures import Shown
from bench.machine import Facts
from bench.runner import Sample, median_of
from bench.workload import IMPORT_FIGURE, SYSTEMS, Figure, Medians, Verdict, Workload

HEADINGS = ("", "Workload", "Figure", "Outlive", "DBOS", "Ratio", "Raw limit", "Target", "Met")
VERDICTS: Mapping[Verdict, str] = {True: "yes", False: "NO", None: "-"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One figure of one workload, for all systems."""

    workload: str
    title: str
    figure: Figure
    medians: Medians
    sizes: Mapping[str, int]

    @property
    def ratio(self) -> float | None:
        """How many times better than DBOS."""
        ours, theirs = self.medians.outlive, self.medians.dbos
        if not ours or not theirs or ours < 0 or theirs < 0:
            return None
        if self.figure.is_per_run:
            ours, theirs = ours / self.sizes["outlive"], theirs / self.sizes["dbos"]
        return ours / theirs if self.figure.higher_is_better else theirs / ours

    @property
    def verdict(self) -> Verdict:
        return self.figure.is_met(self.medians)


def lines_of(samples: Sequence[Sample], workloads: Sequence[Workload], *, store: str) -> Iterator[Line]:
    """The rows of the report for one store."""
    for workload in workloads:
        by_system = {
            system: [s for s in samples if (s.store, s.workload, s.system) == (store, workload.name, system)]
            for system in SYSTEMS
        }
        sizes = {system: taken[0].n for system, taken in by_system.items() if taken}
        for figure in workload.figures:
            medians = Medians(
                outlive=median_of(by_system["outlive"], figure.key),
                dbos=median_of(by_system["dbos"], figure.key),
                raw=median_of(by_system["raw"], figure.key),
                store=store,
            )
            name, title = workload.name, workload.title
            yield Line(workload=name, title=title, figure=figure, medians=medians, sizes=sizes)


def import_line(samples_ms: Sequence[float]) -> Line:
    """The row of the import, which has no store and no rival."""
    medians = Medians(outlive=statistics.median(samples_ms), dbos=None, raw=None, store="")
    return Line(workload="import", title="fresh interpreter", figure=IMPORT_FIGURE, medians=medians, sizes={})


def number(value: float | None, unit: str = "") -> str:
    """Three digits that mean something."""
    if value is None:
        return "-"
    size = abs(value)
    if size >= 100:
        text = f"{value:,.0f}"
    elif size >= 0.001 or size == 0:
        text = f"{value:.3g}"
    else:
        text = f"{value:.1e}"
    return f"{text} {unit}".strip()


def size_text(sizes: Mapping[str, int]) -> str:
    """How many, and how many for DBOS where that differs."""
    ours = sizes.get("outlive", sizes.get("raw"))
    theirs = sizes.get("dbos", ours)
    if ours is None or ours == theirs:
        return "" if theirs is None else f"{theirs:,}"
    return f"{ours:,} (DBOS {theirs:,})"


def cells(line: Line, *, repeated: bool) -> tuple[str, ...]:
    """A row as text; the workload is named only in its first row."""
    unit = line.figure.unit
    title = "" if repeated else f"{size_text(line.sizes)} {line.title}".strip()
    return (
        "" if repeated else line.workload,
        title,
        line.figure.label,
        number(line.medians.outlive, unit),
        number(line.medians.dbos, unit),
        "-" if line.ratio is None else f"{number(line.ratio)}x",
        number(line.medians.raw, unit),
        line.figure.target,
        VERDICTS[line.verdict] if line.figure.target else "",
    )


def table(lines: Sequence[Line]) -> str:
    """All rows, aligned."""
    rows: list[tuple[str, ...]] = [HEADINGS]
    previous = None
    for line in lines:
        rows.append(cells(line, repeated=line.workload == previous))
        previous = line.workload
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    rule = "  ".join("-" * width for width in widths)
    printed = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return "\n".join(text.rstrip() for text in [printed[0], rule, *printed[1:]])


def header(facts: Facts, *, rounds: int, scale: float) -> str:
    """What the reader must know before the first number."""
    versions = f"Python {facts['python']}, Outlive {facts['outlive'] or facts['commit'] or 'in src'}, "
    versions += f"DBOS {facts['dbos']}, apsw {facts['apsw']}"
    return "\n".join(
        (
            f"{facts['processor']}, {facts['cores']} cores, {facts['memory_gib']} GiB, "
            f"{facts['file_system']}, load {facts['load_1min']:.1f}; {versions}",
            f"Median of {rounds} round(s) at scale {scale:g}; systems in turn, each time a fresh process on",
            "a fresh database. Durability is the same for all: SQLite in WAL mode with synchronous=FULL.",
            "DBOS ships with a rollback journal; its connections are switched to WAL, and every process that",
            "measures asks SQLite by PRAGMA whether it is so. PostgreSQL: fsync and synchronous_commit on.",
        )
    )


def failures(samples: Sequence[Sample]) -> list[str]:
    """Every measurement that gave no figures, and the last thing it said; the JSON has the rest."""
    return [
        f"{s.store} {s.workload} {s.system} round {s.turn}: {s.failure.splitlines()[-1]}"
        for s in samples
        if s.failure is not None
    ]


def durability_of(samples: Sequence[Sample]) -> dict[str, list[str]]:
    """What each system's processes found when they asked SQLite."""
    found: dict[str, set[str]] = {}
    for sample in samples:
        if sample.store == "sqlite" and sample.failure is None:
            found.setdefault(sample.system, set()).add(str(sample.figures.get("durability", "not asked")))
    return {system: sorted(said) for system, said in found.items()}


def write_json(
    path: Path,
    *,
    facts: Facts,
    samples: Sequence[Sample],
    import_samples_ms: Sequence[float],
    lines: Sequence[Line],
    shown: Sequence[Shown],
) -> None:
    """Everything, raw samples included, for the next comparison."""
    document = {
        "machine": facts,
        "durability": durability_of(samples),
        "figures": [
            {
                "store": line.medians.store,
                "workload": line.workload,
                "figure": line.figure.key,
                "unit": line.figure.unit,
                "sizes": dict(line.sizes),
                "outlive": line.medians.outlive,
                "dbos": line.medians.dbos,
                "raw": line.medians.raw,
                "ratio": line.ratio,
                "target": line.figure.target,
                "met": line.verdict,
            }
            for line in lines
        ],
        "outlive_alone": [figure._asdict() | {"met": figure.is_met} for figure in shown],
        "import_samples_ms": list(import_samples_ms),
        "samples": [dataclasses.asdict(sample) for sample in samples],
    }
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
