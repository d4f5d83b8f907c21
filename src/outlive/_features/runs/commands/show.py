"""`outlive runs show`: one run with its facts, its errors and its timeline."""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from outlive._features.runs.commands.view import plain_run, when
from outlive.cli import completing as complete
from outlive.cli.advice import as_typed
from outlive.cli.edge import ask, counted, json_option, place_option, print_json
from outlive.cli.paint import clock, painted, span, strong

if TYPE_CHECKING:
    from outlive._kernel.client.timeline import Line
    from outlive._kernel.values.event import Event
    from outlive._kernel.values.failure import Failure
    from outlive._kernel.values.inbox import UnreadMessage
    from outlive._kernel.values.run import Run
    from outlive.engine import Engine

LINES = 100
"""How many lines of a timeline are shown unless more are wanted; the last ones."""
BAR_MIN, BAR_MAX = 16, 40
FRAMES_MAX = 6
CAUSES_MAX = 5
INDENT = 11
"""Where what is said of a fact begins."""
WORDS_MIN = 20
_FRAME = re.compile(r'File "(?P<file>.+)", line (?P<line>\d+), in (?P<name>.+)(?:\n +(?P<code>.+))?')


@dataclass(frozen=True, slots=True)
class Seen:
    """All that is shown of a run."""

    run: Run
    why: str
    events: list[Event]
    unread: list[UnreadMessage]


@click.command()
@click.argument("run_id", metavar="ID", shell_complete=complete.run_ids)
@click.option("--history", "has_history", is_flag=True, help="Every event on a line of its own, not the timeline.")
@click.option("--limit", type=click.IntRange(1), default=LINES, show_default=True, help="How many of the last lines.")
@place_option
@json_option
def show(*, run_id: str, has_history: bool, limit: int, url: str, as_json: bool) -> None:
    """Show one run: what it waits for, its arguments and its outcome, its errors, and what happened when.

    In the timeline = is an attempt of a step, x one that failed, . the time between attempts, ~ a wait, - a child run,
    ! the time between the loss of a worker and the claim of the next one, | a moment, and > what goes on. Its scale is
    not even: short steps are drawn longer beside long waits.
    """
    seen = ask(url, lambda engine: _look(engine, run_id))
    if as_json:
        print_json(_plain(seen, with_history=has_history))
        return
    _print_head(seen)
    if has_history:
        _print_history(seen, limit)
    else:
        _print_timeline(seen, limit)


async def _look(engine: Engine, run_id: str) -> Seen:
    handle = engine.get(run_id)
    run, why, events = await engine.info(run_id), as_typed(await handle.why()), await handle.history()
    return Seen(run, why, events, [] if run.has_ended else await handle.inbox())


# -- What the journal says of this run ---------------------------------------------------------------------------------


def _created(seen: Seen) -> dict[str, Any] | None:
    for event in seen.events:
        if event.type == "SnapshotTaken" and seen.run.number == 0:
            created: dict[str, Any] = event.data["created"]
            return created
        if event.type == "RunCreated" and event.run_id == seen.run.id:
            return event.data
    return None


def _end(seen: Seen) -> Event | None:
    from outlive._kernel.client.timeline import ENDS

    if not seen.run.has_ended:
        return None
    return next((it for it in reversed(seen.events) if it.run_id == seen.run.id and it.type in ENDS), None)


def _published(seen: Seen) -> Any:
    """The object that the run shows now: each event has only the fields that changed."""
    found: dict[str, Any] = {}
    for event in seen.events:
        if event.type == "RunPublished" and event.run_id == seen.run.id and isinstance(event.data["payload"], dict):
            found |= event.data["payload"]
    return found or None


# -- For people --------------------------------------------------------------------------------------------------------


def _print_head(seen: Seen) -> None:
    run, now = seen.run, datetime.now(UTC)
    facts = [
        ("run", strong(run.id)),
        ("workflow", f"{run.workflow}, version {run.version}"),
        ("status", painted(run.status.replace("_", " "), run.status)),
        ("why", seen.why),
        ("created", f"{clock(run.created_at)} UTC, {span(max(0.0, (now - run.created_at).total_seconds()))} ago"),
    ]
    if run.finished_at is not None:
        took = span((run.finished_at - run.created_at).total_seconds())
        facts.append(("ended", f"{clock(run.finished_at)} UTC, after {took}"))
    if run.begin_by is not None and not run.has_ended:
        facts.append(("begin by", f"{clock(run.begin_by)} UTC"))
    if run.timeout_at is not None and not run.has_ended:
        facts.append(("deadline", f"{clock(run.timeout_at)} UTC"))
    if run.worker:
        facts.append(("worker", run.worker))
    if run.parent_id is not None:
        facts.append(("parent", run.parent_id))
    if run.queue:
        facts.append(("queue", f"{run.queue}, key {run.queue_key}" if run.queue_key else run.queue))
    if run.tags:
        facts.append(("tags", " ".join(f"{name}={value}" for name, value in run.tags.items())))
    facts += [("unread", _unread(it, now)) for it in seen.unread]
    facts += [(name, _json(value)) for name, value in _values(seen)]
    for name, text in facts:
        click.echo(f"{name:<10} {_whole(text) if name == 'why' else _cut(text, INDENT)}")
    end = _end(seen)
    if end is not None and end.failure is not None:
        print_failure(end.failure)


def _unread(message: UnreadMessage, now: datetime) -> str:
    words = f"{message.kind} {message.name}".strip() + (f", key {message.key}" if message.key else "")
    said = {"inbox": "no worker has taken it", "buffered": "the code has not asked for it"}.get(message.state, "")
    return f"{words}, {span(max(0.0, (now - message.at).total_seconds()))} ago" + (said and f": {said}")


def _values(seen: Seen) -> list[tuple[str, Any]]:
    created, end, published = _created(seen), _end(seen), _published(seen)
    values = [] if created is None else [("input", created["input"])]
    if published is not None:
        values.append(("published", published))
    if end is not None and "result" in end.data:
        values.append(("result", end.data["result"]))
    return values


def print_failure(failure: Failure, *, err: bool = False) -> None:
    """An error and what caused it, with the lines of the user's code."""
    for number, each in enumerate(_chain(failure)):
        name = "error" if not number else "because of"
        click.echo(f"{name:<10} {painted(_whole(f'{each.type}: {each.message}'), 'failed')}", err=err)
        for frame in frames_of(each):
            code = f": {frame['code']}" if frame["code"] else ""
            click.echo(f"             {frame['file']}:{frame['line']} in {frame['name']}{code}", err=err)


def _chain(failure: Failure | None) -> list[Failure]:
    found: list[Failure] = []
    while failure is not None and len(found) < CAUSES_MAX:
        found.append(failure)
        failure = failure.cause
    return found


def frames_of(failure: Failure) -> list[dict[str, Any]]:
    """The last frames of the user's code, the outermost first."""
    found = [
        {"file": frame["file"], "line": int(frame["line"]), "name": frame["name"], "code": frame["code"]}
        for frame in _FRAME.finditer(failure.traceback)
    ]
    return found[-FRAMES_MAX:]


def _print_timeline(seen: Seen, limit: int) -> None:
    from outlive._kernel.client.timeline import Timeline
    from outlive._kernel.model.instant import MICROSECONDS
    from outlive.cli.drawing import drawn

    timeline = Timeline(seen.events)
    lines = timeline.lines()
    shown = lines[-limit:]
    now_at = timeline.last_at if seen.run.has_ended else max(timeline.last_at, int(time.time() * MICROSECONDS))
    click.echo()
    if len(lines) > len(shown):
        click.echo(f"... {counted(len(lines) - len(shown), 'line')} before these; --limit {len(lines)} shows them")
    for text in drawn(shown, began_at=timeline.began_at, now_at=now_at, width=_bar_width()):
        click.echo(_cut(text, 0))


def _bar_width() -> int:
    return max(BAR_MIN, min(BAR_MAX, shutil.get_terminal_size().columns // 3))


def _print_history(seen: Seen, limit: int) -> None:
    shown = seen.events[-limit:]
    click.echo()
    if len(seen.events) > len(shown):
        click.echo(f"... {counted(len(seen.events) - len(shown), 'event')} before these; --limit shows more")
    for event in shown:
        click.echo(_cut(event_line(event, seen.run.root_id), 0))


def event_line(event: Event, root_id: str) -> str:
    """One event for people: when, in which run of the tree, and what."""
    from outlive._kernel.model.under_way import arguments_shown

    whose = f"{event.run_id}: " if event.run_id != root_id else ""
    at = f"{clock(event.at)}.{event.at.microsecond // 1_000:03}"
    arguments = arguments_shown(event.data.get("arguments"))
    return f"{at}  {whose}{' '.join(event.words.split())}{arguments and f' {arguments}'}"


def _json(value: Any) -> str:
    import msgspec

    return msgspec.json.encode(value).decode()


def _cut(text: str, used: int) -> str:
    """The beginning of a text that fits on a line of the terminal; all of it in a pipe."""
    if not sys.stdout.isatty():
        return text
    room = shutil.get_terminal_size().columns - used
    plain = click.unstyle(text)
    if len(plain) <= room:
        return text
    # Colours stand around words at the beginning of a line or around all of it: what is cut has none.
    return f"{plain[: room - 3]}..."


def _whole(text: str) -> str:
    """All lines of what a person has to read, one below the other; on a terminal none is longer than it."""
    lines = text.splitlines()
    if sys.stdout.isatty():
        width = max(WORDS_MIN, shutil.get_terminal_size().columns - INDENT)
        folded = partial(textwrap.wrap, width=width, break_on_hyphens=False)
        lines = [part for line in lines for part in folded(line, subsequent_indent=_margin(line)) or [""]]
    return f"\n{' ' * INDENT}".join(lines)


def _margin(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


# -- For programs ------------------------------------------------------------------------------------------------------


def _plain(seen: Seen, *, with_history: bool) -> dict[str, Any]:
    import msgspec

    from outlive._kernel.client.timeline import Timeline

    end = _end(seen)
    failure = None if end is None else end.failure
    plain: dict[str, Any] = {"run": plain_run(seen.run), "why": seen.why, **dict(_values(seen))}
    plain["errors"] = [
        {"type": each.type, "message": each.message, "frames": frames_of(each)} for each in _chain(failure)
    ]
    if seen.unread:
        plain["unread"] = msgspec.to_builtins(seen.unread)
    plain["timeline"] = [_plain_line(line) for line in Timeline(seen.events).lines()]
    if with_history:
        plain["history"] = [plain_event(event) for event in seen.events]
    return plain


def _plain_line(line: Line) -> dict[str, Any]:
    return {
        "kind": line.kind.value,
        "name": line.name,
        "run_id": line.run_id,
        "depth": line.depth,
        "began_at": when(line.began_at),
        "ended_at": when(line.ended_at),
        "state": line.state.value,
        "attempts": [
            {
                "began_at": when(each.began_at),
                "ended_at": when(each.ended_at),
                "error": None if each.failure is None else f"{each.failure.type}: {each.failure.message}",
            }
            for each in line.attempts
        ],
        "note": line.note or None,
        "error": None if line.failure is None else f"{line.failure.type}: {line.failure.message}",
    }


def plain_event(event: Event) -> Any:
    """An event for programs: as the HTTP API shows it."""
    import msgspec

    return msgspec.to_builtins(event)
