"""The report as a picture: one panel per figure, three bars each, on a logarithmic scale.

The scale is logarithmic because the systems lie two orders of magnitude apart; on a linear one the smaller
bar would be a line. Panels differ in unit and direction, so each says which way is better.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bench.report import Line, number

COLOURS = {"Outlive": "#2a6f97", "DBOS": "#d1495b", "Raw limit": "#9a9a9a"}
SHOWN = {
    ("W1", "rate"),
    ("W2", "rate"),
    ("W3", "p50_ms"),
    ("W4", "seconds"),
    ("W5", "run_seconds"),
    ("W5", "recover_seconds"),
    ("W6", "recover_seconds"),
    ("W7", "rss_mb"),
    ("W7", "wake_seconds"),
    ("cost", "cpu_ms"),
}
COLUMNS = 5


def draw(lines: Sequence[Line], *, directory: Path, name: str) -> list[Path]:
    """Write the picture as PNG and SVG, and say where; without matplotlib there is none, and the tables say it all."""
    shown = [line for line in lines if (line.workload, line.figure.key) in SHOWN]
    if not shown:
        return []
    if find_spec("matplotlib") is None:
        print("matplotlib is not installed: no picture is drawn", file=sys.stderr)
        return []
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    columns = min(COLUMNS, len(shown))
    height = -(-len(shown) // columns)
    figure, axes = pyplot.subplots(height, columns, figsize=(2.6 * columns, 3.0 * height), squeeze=False)
    for panel in axes.flat[len(shown) :]:
        panel.set_visible(False)
    for panel, line in zip(axes.flat, shown, strict=False):
        draw_panel(panel, line)
    figure.suptitle("Outlive beside DBOS and the bare driver (log scale, same durability)", fontsize=11)
    figure.tight_layout()
    paths = [directory / f"{name}.png", directory / f"{name}.svg"]
    for path in paths:
        figure.savefig(path, dpi=150)
    pyplot.close(figure)
    return paths


def draw_panel(panel: Any, line: Line) -> None:
    """One figure of one workload. A size that differs from Outlive's is written under the bar."""
    values = {"Outlive": line.medians.outlive, "DBOS": line.medians.dbos, "Raw limit": line.medians.raw}
    systems = {"Outlive": "outlive", "DBOS": "dbos", "Raw limit": "raw"}
    present = {label: value for label, value in values.items() if value is not None and value > 0}
    if not present:
        panel.set_visible(False)
        return
    names = [f"{label}\nn={line.sizes[systems[label]]:,}" for label in present]
    bars = panel.bar(names, list(present.values()), color=[COLOURS[label] for label in present], log=True)
    texts = [number(value, line.figure.unit) for value in present.values()]
    panel.bar_label(bars, texts, fontsize=7, padding=2)
    better = "more" if line.figure.higher_is_better else "less"
    panel.set_title(f"{line.workload}: {line.figure.label}\n({better} is better)", fontsize=8)
    panel.set_ylim(min(present.values()) / 3, max(present.values()) * 4)
    panel.tick_params(which="both", labelsize=6)
    panel.spines[["top", "right"]].set_visible(False)
