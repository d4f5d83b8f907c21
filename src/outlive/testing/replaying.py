"""`replay`: exported histories against the code as it is now.

A history is what happened. Code that contradicts it would park the runs that are under way; here it fails a test
before it is deployed, with the file, the line, the event, and what the journal and the code say.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from outlive._kernel.define.registry import REGISTRY, Registry
from outlive._kernel.define.workflow import Workflow
from outlive._kernel.journal.codec import open_rows
from outlive._kernel.journal.event import AnyEvent
from outlive._kernel.journal.history import History, read_history
from outlive._kernel.journal.packing import Packer, PayloadCodec
from outlive._kernel.model import Limits, child_id
from outlive._kernel.replay.command import WorkflowSpec
from outlive.errors import ConfigurationError, OutliveError
from outlive.errors.store import HistoryFormatError
from outlive.testing.rerun import Contradiction, Rerun

Place = str | os.PathLike[str]

SHOWN_MAX = 10
"""Histories that one error tells of; a change that breaks one often breaks a hundred."""


class Replayed(list[Path]):
    """The files that were replayed, and where the code calls with other arguments than they have.

    Such a difference is not a contradiction: the runs go on with what the journal has. A test that wants none writes
    `assert not replay(...).differences`.
    """

    def __init__(self, paths: list[Path], differences: list[str]) -> None:
        super().__init__(paths)
        self.differences = differences


class HistoryMismatchError(AssertionError):
    """The code contradicts a history. `problems` has one text for each history that does not replay."""

    def __init__(self, problems: list[str], replayed: int) -> None:
        self.problems = problems
        shown = problems[:SHOWN_MAX]
        if len(problems) > SHOWN_MAX:
            shown.append(f"and {len(problems) - SHOWN_MAX} more")
        count = f"{len(problems)} of {replayed} histories do not replay with this code"
        super().__init__("\n\n".join([count, *shown]))


def replay(
    histories: Place | Iterable[Place],
    *,
    workflows: Sequence[Workflow[..., Any]] = (),
    codecs: Sequence[PayloadCodec] = (),
) -> Replayed:
    """Replay exported histories with the code of this process; the files that were replayed, and their differences.

        replay("histories/*.jsonl", workflows=[checkout, refund])

    Args:
        histories: a path or a pattern, or several of them. One that matches no file is an error.
        workflows: the workflows of the histories. Others that they call are found by name, if they are imported.
        codecs: the payload codecs of the engine that wrote them.

    Raises:
        HistoryMismatchError: the code contradicts a history, ends otherwise, or is not there.
        HistoryFormatError: a file is not a history, or was changed.
    """
    resolve = _Definitions(workflows)
    packer = Packer(Limits(), codecs)
    paths = _paths(histories)
    problems: list[str] = []
    differences: list[str] = []
    for path in paths:
        problem = _problem(read_history(path.read_text("utf-8"), source=str(path)), resolve, packer, differences)
        if problem:
            problems.append(problem)
    if problems:
        raise HistoryMismatchError(problems, len(paths))
    return Replayed(paths, differences)


class _Definitions:
    """The given workflows first, then whatever is imported."""

    def __init__(self, workflows: Sequence[Workflow[..., Any]]) -> None:
        self._given = Registry()
        for workflow in workflows:
            self._given.add_workflow(workflow.spec)
        self._known = {(workflow.spec.name, workflow.spec.version) for workflow in workflows}

    def __call__(self, name: str, version: int) -> WorkflowSpec:
        return (self._given if (name, version) in self._known else REGISTRY).workflow(name, version)


def _paths(histories: Place | Iterable[Place]) -> list[Path]:
    places = [histories] if isinstance(histories, str | os.PathLike) else list(histories)
    paths: dict[Path, None] = {}
    for place in places:
        found = [os.fspath(place)] if Path(place).is_file() else sorted(glob.glob(os.fspath(place), recursive=True))  # noqa: PTH207
        if not found:
            raise ConfigurationError(f"replay: no file matches {os.fspath(place)!r} in {Path.cwd()}")
        paths.update(dict.fromkeys(map(Path, found)))
    return list(paths)


def _problem(history: History, resolve: _Definitions, packer: Packer, differences: list[str]) -> str:
    """The mistake in a history, for a person; empty if there is none. Mere differences join `differences`."""
    events = _open(history)
    rerun = Rerun(history.head.root_id, resolve=resolve, unpack=lambda payload: packer.unpack(payload, history.blobs))
    try:
        rerun.feed_all(events)
    except Contradiction as error:
        place, reason = error.place, error.reason
    except OutliveError as error:
        place, reason = 0, str(error)
    else:
        place, reason = 0, ""
    first, run_id = history.rows[0][0], history.head.root_id
    differences += [
        f"{history.source}:{history.lines[found.seq - first]}: run {child_id(run_id, found.run)}, event {found.seq}: "
        f"{found.definition} calls {found.call} with other arguments"
        for found in rerun.differences
    ]
    if not reason:
        return ""
    event, seq = events[place], history.rows[place][0]
    what = " ".join(filter(None, [type(event).__name__, str(getattr(event, "call", "") or "")]))
    return f"{history.source}:{history.lines[place]}: run {history.head.root_id}, event {seq} ({what})\n{reason}"


def _open(history: History) -> list[AnyEvent]:
    reading = open_rows(history.rows, nonce=history.head.nonce, run_id=history.head.root_id)
    events: list[AnyEvent] = []
    for line in history.lines:
        try:
            events.append(next(reading))
        except OutliveError as error:
            raise HistoryFormatError(history.source, line, str(error)) from error
    return events
