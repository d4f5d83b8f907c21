"""Writes what a timeline says of each golden history: `python -m tests.golden.make_timelines`.

There are two timelines: `outlive runs show` folds a journal in Python, and the dashboard in JavaScript. Each draws in
its own way, and both must say the same of what happened and when. The files in `timelines` hold that, and the tests of
both compare with them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from outlive._kernel.client.timeline import Line, LineKind, Timeline
from outlive._kernel.values.event import event_of
from outlive.types import Event
from tests.golden.test_golden import FILES, events_of

FOLDER = Path(__file__).parent / "timelines"
ROWS = (LineKind.STEP, LineKind.CHILD, LineKind.OTHER, LineKind.APPROVAL)
"""What both draw as a row; a wait is one line in a terminal, and a row for each thing that is waited for on a page."""


def expected_of(path: Path) -> dict[str, Any]:
    """The content of the file of a golden history."""
    return json.loads((FOLDER / f"{path.stem}.json").read_bytes())  # type: ignore[no-any-return]


def shown(path: Path) -> list[Event]:
    """The events of a golden history as people see them."""
    events = events_of(path)
    root_id = json.loads(path.read_text("utf-8").partition("\n")[0])["root_id"]
    return [event_of(seq, event, root_id) for seq, event in enumerate(events)]


def said(timeline: Timeline) -> dict[str, Any]:
    """The rows, bars, gaps and end of a timeline; times are microseconds since its beginning."""
    lines = timeline.lines()
    return {
        "rows": [_row(line, timeline.began_at) for line in lines if line.kind in ROWS],
        "gaps": [[*_span(line, timeline.began_at), line.name] for line in lines if line.kind is LineKind.LOST],
        "end": timeline.end or None,
    }


def _row(line: Line, began_at: int) -> dict[str, Any]:
    bars = (
        [[it.began_at - began_at, it.ended_at - began_at] for it in line.attempts]
        if line.kind is LineKind.STEP
        else [_span(line, began_at)]
    )
    return {
        "name": line.name.replace("'", ""),
        "kind": line.kind.value,
        "depth": line.depth,
        "state": line.state.value,
        "failure": None if line.failure is None else line.failure.message,
        "bars": bars,
    }


def _span(line: Line, began_at: int) -> list[int | None]:
    return [line.began_at - began_at, None if line.ended_at is None else line.ended_at - began_at]


def _laid_out(content: dict[str, Any]) -> str:
    """JSON with a row on each line, so that a difference shows which rows changed."""
    parts = []
    for name, value in content.items():
        rows = ",\n".join(f"    {json.dumps(it)}" for it in value) if isinstance(value, list) else ""
        parts.append(f'  "{name}": ' + (f"[\n{rows}\n  ]" if rows else json.dumps(value)))
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main() -> None:
    """Write every file again."""
    FOLDER.mkdir(exist_ok=True)
    for path in FILES:
        (FOLDER / f"{path.stem}.json").write_text(_laid_out(said(Timeline(shown(path)))), "utf-8")


if __name__ == "__main__":
    main()
