"""`outlive runs cancel|retry|resume|pause|skip|fork`: for runs that are named, or for all that fit.

What is named is done at once. What is chosen by filters is shown first, and done with `--yes`: the oldest first, at
most `--limit` of them, and one that refuses does not stop the others.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from outlive._features.bulk.following_commands import do_in_background, has_worker
from outlive._features.runs.commands.view import TITLES, row_of
from outlive.cli import completing as complete
from outlive.cli.advice import as_typed
from outlive.cli.edge import (
    REFUSED,
    Mistake,
    ask,
    by_option,
    counted,
    json_option,
    open_engine,
    person,
    place_option,
    print_json,
    print_table,
    run,
    say,
)
from outlive.cli.filters import OPTIONS, filter_options, filters_of, tag_of
from outlive.cli.starting import options_of, start_options
from outlive.cli.values import json_of, seconds_of

if TYPE_CHECKING:
    from outlive._features.bulk.verbs import BulkProgress
    from outlive._features.bulk.workflow import BulkVerb
    from outlive._kernel.model.run import RunStatus
    from outlive._kernel.values.run import Run
    from outlive.engine import Engine

PROGRESS_SECONDS = 1.0

children_option = click.option("--children", "has_children", is_flag=True, help="By filters: child runs too.")
reason_option = click.option("--reason", default="", help="Why, for the history.")
_MANY: list[Callable[..., Any]] = [
    click.argument("run_ids", nargs=-1, metavar="[ID]...", shell_complete=complete.run_ids),
    filter_options,
    click.option(
        "--limit",
        type=click.IntRange(1, 1_000_000),
        default=100,
        show_default=True,
        help="At most so many, the oldest first.",
    ),
    click.option("--yes", "is_certain", is_flag=True, help="Do it; without, runs that fit are only shown."),
    place_option,
    json_option,
]


def for_many(command: Callable[..., None]) -> Callable[..., None]:
    """A command that is for some runs or for all that fit: it gets the `Choice`, and its own options."""

    @wraps(command)
    def chosen(
        *, run_ids: tuple[str, ...], limit: int, is_certain: bool, url: str, as_json: bool, **given: Any
    ) -> None:
        filters = filters_of({name: given.pop(name) for name in OPTIONS})
        has_children = given.pop("has_children", False)
        command(Choice(url, run_ids, filters, limit, is_certain, as_json, has_children), **given)

    for option in reversed(_MANY):
        chosen = option(chosen)
    return chosen


@dataclass(frozen=True, slots=True)
class Choice:
    """Which runs a command is for, and whether it is to be done."""

    url: str
    run_ids: tuple[str, ...]
    filters: dict[str, Any]
    limit: int
    is_certain: bool
    as_json: bool
    has_children: bool = False
    """Whether child runs are meant too."""


@dataclass(frozen=True, slots=True)
class Act:
    """The act of a command on a run."""

    verb: Callable[[Engine, str], Awaitable[Any]]
    done: str
    """In the words of the answer: `retried`."""
    statuses: tuple[RunStatus, ...]
    """The statuses of the runs that are meant if no status is given."""
    is_for_trees: bool = True
    """Whether it is done to the whole tree of a child."""
    operation: BulkVerb | None = None
    """The verb of `engine.bulk` that does it to many, if there is one."""
    options: dict[str, Any] = field(default_factory=dict)
    """The options of that verb."""


def act_on(choice: Choice, act: Act) -> None:
    """Do it, or show what would be done; exits with 1 if a run has refused.

    Raises:
        Mistake: no runs were chosen, or in two ways.
    """
    if bool(choice.run_ids) == bool(choice.filters):
        raise Mistake("name runs by their ids, or choose them by filters, for example --workflow order")
    if run(_act(choice, act)):
        sys.exit(REFUSED)


async def _act(choice: Choice, act: Act) -> int:
    """How many runs have refused."""
    async with open_engine(choice.url) as engine:
        if choice.run_ids:
            return await _do_all(engine, list(choice.run_ids), act, as_json=choice.as_json)
        if choice.is_certain and act.operation is not None and await has_worker(engine):
            options = {**act.options, "limit": choice.limit, **_wanted(choice, act)}
            return await do_in_background(engine, act.operation, act.done, as_json=choice.as_json, **options)
        found = await _find(engine, choice, act)
        if not choice.is_certain:
            _preview(found, choice, act)
            return 0
        return await _do_all(engine, [it.id for it in found], act, as_json=choice.as_json)


def _wanted(choice: Choice, act: Act) -> dict[str, Any]:
    return {"status": act.statuses, "roots_only": not choice.has_children, **choice.filters}


async def _find(engine: Engine, choice: Choice, act: Act) -> list[Run]:
    from outlive._kernel.client.bulk import acted_on

    found = await engine.list(**_wanted(choice, act), order="created_at", limit=min(choice.limit, 1_000), after=None)
    return acted_on(found, is_for_trees=act.is_for_trees)


def _preview(found: list[Run], choice: Choice, act: Act) -> None:
    if choice.as_json:
        outcomes = [{"id": it.id, "workflow": it.workflow, "status": it.status} for it in found]
        print_json({"done": 0, "refused": 0, "preview": True, "runs": outcomes})
        return
    if not found:
        click.echo("no run fits", err=True)
        return
    now = datetime.now(UTC)
    print_table(TITLES, [row_of(it, now=now) for it in found])
    more = f", and perhaps more after them: --limit is {choice.limit:,}" if len(found) == choice.limit else ""
    click.echo(f"{counted(len(found), 'run')} would be {act.done}{more}; say --yes to do it", err=True)


async def _do_all(engine: Engine, run_ids: list[str], act: Act, *, as_json: bool) -> int:
    from outlive._kernel.client.bulk import side_by_side

    outcomes: list[dict[str, Any]] = []
    refused, next_at = 0, time.monotonic() + PROGRESS_SECONDS
    async for outcome in side_by_side(run_ids, lambda run_id: _do(engine, run_id, act)):
        outcomes.append(outcome)
        refused += "error" in outcome
        if not as_json:
            _print(outcome, act)
        if time.monotonic() >= next_at and sys.stderr.isatty():
            click.echo(f"{len(outcomes):,} of {len(run_ids):,}", err=True)
            next_at = time.monotonic() + PROGRESS_SECONDS
    if as_json:
        print_json({"done": len(outcomes) - refused, "refused": refused, "preview": False, "runs": outcomes})
    elif len(outcomes) != 1:
        also = f", {refused:,} refused" if refused else ""
        click.echo(f"{counted(len(outcomes) - refused, 'run')} {act.done}{also}", err=True)
    return refused


async def _do(engine: Engine, run_id: str, act: Act) -> dict[str, Any]:
    from outlive.errors import OutliveError, StoreError

    try:
        answer = await act.verb(engine, run_id)
    except StoreError:
        raise  # No other run would fare better.
    except OutliveError as error:
        return {"id": run_id, "error": as_typed(error)}
    return {"id": run_id, "new_id": answer} if isinstance(answer, str) else {"id": run_id}


def _print(outcome: dict[str, Any], act: Act) -> None:
    if "error" in outcome:
        click.echo(f"run {outcome['id']}: {outcome['error']}", err=True)
    elif "new_id" in outcome:
        click.echo(f"run {outcome['id']} {act.done}: {outcome['new_id']}")
    else:
        click.echo(f"run {outcome['id']} {act.done}")


# -- Whole workflows and queues ----------------------------------------------------------------------------------------


def _whole(choice: Choice, *, is_all: bool) -> tuple[str, dict[str, Any]] | None:
    """The whole that is paused or resumed, in words and as `engine.pause` takes it; None if runs are meant, one by
    one."""
    if is_all:
        if choice.run_ids or choice.filters:
            raise Mistake("--all is everything in the store: give neither ids nor filters with it")
        return "everything in this store", {"all": True}
    if not choice.run_ids and choice.filters.keys() == {"workflow"}:
        return f"workflow {choice.filters['workflow']}", choice.filters
    if not choice.run_ids and choice.filters.keys() == {"queue"}:
        return f"queue {choice.filters['queue']}", choice.filters
    return None


def _act_on_whole(choice: Choice, what: str, done: str, verb: Callable[[Engine], Awaitable[Any]]) -> None:
    from outlive._kernel.model.run import MOVING

    filters = {name: value for name, value in choice.filters.items() if name in ("workflow", "queue")}

    async def work() -> tuple[Any, str]:
        async with open_engine(choice.url) as engine:
            found = await engine.count(**filters, status=MOVING, roots_only=True)
            if choice.is_certain:
                await verb(engine)
            return found, str(found)

    number, shown = run(work())
    if choice.as_json:
        print_json(
            {"what": what, "done": choice.is_certain, "preview": not choice.is_certain, "open_runs": int(number)}
        )
    elif choice.is_certain:
        click.echo(f"{what} is {done}")
    else:
        also = f"{shown} open {'run' if shown == '1' else 'runs'}, and the runs that are started later"
        click.echo(f"{what} would be {done} as a whole: {also}; say --yes to do it", err=True)


# -- The commands ------------------------------------------------------------------------------------------------------


@click.command()
@for_many
@children_option
@reason_option
def cancel(choice: Choice, *, reason: str) -> None:
    """Ask runs to stop; durable when the command returns. Their `finally` blocks run, and sagas are rolled back.

    By filters: runs that have not ended.
    """
    from outlive._kernel.model.run import OPEN

    verb: Callable[[Engine, str], Awaitable[Any]] = lambda engine, run_id: engine.cancel(run_id, reason=reason)  # noqa: E731
    act = Act(verb, "asked to stop", OPEN, False, "cancel", {"reason": reason})
    act_on(choice, act)


@click.command()
@for_many
@children_option
@reason_option
def retry(choice: Choice, *, reason: str) -> None:
    """Let runs that failed, timed out or were cancelled go on at what failed: same id, completed steps stay.

    A live worker that has the workflow does it, and the command waits for it. A parked run is resumed instead.
    """
    from outlive._kernel.model.run import ENDED_BADLY

    verb: Callable[[Engine, str], Awaitable[Any]] = lambda engine, run_id: engine.retry(run_id, reason=reason)  # noqa: E731
    act_on(choice, Act(verb, "retried", ENDED_BADLY, True, "retry", {"reason": reason}))


@click.command()
@for_many
@click.option("--all", "is_all", is_flag=True, help="Everything that was paused with --all.")
def resume(choice: Choice, *, is_all: bool) -> None:
    """Let parked and paused runs go on, for example with new code.

    --workflow alone, --queue alone and --all let go on what was paused like that. With another filter, for example
    --status parked, runs that fit are resumed one by one.
    """
    from outlive._kernel.model.run import RunStatus

    whole = _whole(choice, is_all=is_all)
    if whole is not None:
        what, filters = whole
        _act_on_whole(choice, what, "resumed", lambda engine: engine.resume(**filters))
        return
    act_on(
        choice, Act(lambda engine, run_id: engine.resume(run_id), "resumed", (RunStatus.PARKED,), operation="resume")
    )


@click.command()
@for_many
@click.option("--all", "is_all", is_flag=True, help="Everything in the store.")
@by_option
@reason_option
def pause(choice: Choice, *, is_all: bool, by: str, reason: str) -> None:
    """Let runs begin nothing more until they are resumed. Steps that run end, and their results are kept.

    --workflow alone, --queue alone and --all pause as a whole, also what is started later. With another filter runs
    that fit now are paused one by one.
    """
    from outlive._kernel.model.run import MOVING

    by = person(choice.url, by)
    whole = _whole(choice, is_all=is_all)
    if whole is not None:
        what, filters = whole
        _act_on_whole(choice, what, "paused", lambda engine: engine.pause(**filters, by=by, reason=reason))
        return
    verb: Callable[[Engine, str], Awaitable[Any]] = lambda engine, run_id: engine.pause(run_id, by=by, reason=reason)  # noqa: E731
    act_on(choice, Act(verb, "paused", MOVING, True, "pause", {"by": by, "reason": reason}))


@click.command()
@click.argument("operation_id", required=False, metavar="[ID]")
@place_option
@json_option
def operations(*, operation_id: str | None, url: str, as_json: bool) -> None:
    """Show verbs for many runs that workers carry out: how far each is, and with an ID which runs have refused."""

    async def look(engine: Engine) -> list[BulkProgress]:
        if operation_id is None:
            return list(await engine.bulk.list())
        return [await engine.bulk.get(operation_id).progress()]

    from msgspec import to_builtins

    found = ask(url, look)
    if as_json:
        print_json([to_builtins(it) for it in found])
        return
    if not found:
        click.echo("no operations yet", err=True)
        return
    rows = [[it.id, it.verb, it.status, *map(str, (it.done, it.refused)), it.by, it.reason] for it in found]
    print_table(["operation", "verb", "status", "done", "refused", "by", "reason"], rows)
    if operation_id is not None:
        for refusal in found[0].refusals:
            click.echo(f"run {refusal.id}: {refusal.message}")


@click.command()
@for_many
@click.option(
    "--step", "call", metavar="CALL", help="Which step, as its history calls it; needed if there are several."
)
@click.option("--result", metavar="JSON", help="What the step is to have returned; else it raises StepSkippedError.")
def skip(choice: Choice, *, call: str | None, result: str | None) -> None:
    """Let parked runs go on without the step that they cannot get past.

    By filters, this command does it, and not a worker: if it is killed, the runs that are left stay as they are.
    """
    from outlive._kernel.model.run import RunStatus

    given = {} if result is None else {"result": json_of("--result", result)}
    verb: Callable[[Engine, str], Awaitable[Any]] = lambda engine, run_id: engine.skip_step(run_id, call, **given)  # noqa: E731
    act_on(choice, Act(verb, "resumed without the step", (RunStatus.PARKED,)))


@click.command()
@click.argument("run_id", metavar="ID", shell_complete=complete.run_ids)
@click.option("--tag", "tags", multiple=True, metavar="NAME=VALUE", help="A tag beside its own; may be repeated.")
@click.option("--untag", "removed", multiple=True, metavar="NAME", help="A tag that it loses; may be repeated.")
@click.option("--timeout", metavar="SPAN", help="How long it may take: from now on, or from its beginning.")
@click.option("--no-timeout", "is_endless", is_flag=True, help="It may take as long as it likes.")
@start_options("queue", "key", "priority", "delay", "start_at")
@reason_option
@place_option
@json_option
def change(
    *,
    run_id: str,
    tags: tuple[str, ...],
    removed: tuple[str, ...],
    timeout: str | None,
    is_endless: bool,
    reason: str,
    url: str,
    as_json: bool,
    **place: Any,
) -> None:
    """Change an open run: its tags and its timeout, and its queue and its start if no worker has begun it."""
    if is_endless and timeout is not None:
        raise Mistake("give --timeout or --no-timeout, not both")
    changes = options_of(place, ("queue", "key", "priority", "delay", "start_at"))
    if tags or removed:
        changes["tags"] = dict.fromkeys(removed) | dict(tag_of("--tag", tag) for tag in tags)
    if is_endless or timeout is not None:
        changes["timeout"] = None if timeout is None else seconds_of("--timeout", timeout)
    ask(url, lambda engine: engine.change(run_id, reason=reason, **changes))
    say(f"{run_id} is changed", {"id": run_id}, as_json=as_json)


@click.command()
@for_many
@click.option("--at", metavar="CALL", help="The call that is not copied, nor anything behind it; the end unless given.")
@click.option("--set", "results", multiple=True, metavar="STEP=JSON", help="Another result of a step; may be repeated.")
@click.option("--input", "given", metavar="JSON", help="Other arguments of the workflow: a list, or an object by name.")
@click.option("--version", "new_version", type=click.IntRange(1), help="Another version of the workflow.")
@click.option("--id", "new_id", help="Of the new run; made up unless given.")
@reason_option
def fork(
    choice: Choice,
    *,
    at: str | None,
    results: tuple[str, ...],
    given: str | None,
    new_version: int | None,
    new_id: str | None,
    reason: str,
) -> None:
    """Start a new run with the history of another one up to some point, edited. The other run stays as it is.

    A live worker that has the workflow does it, and the command waits for it. The id of the new run is printed. By
    filters, this command asks for each fork: if it is killed, the runs that are left are not forked.
    """
    from outlive._kernel.model.run import ENDED_BADLY

    if new_id is not None and len(choice.run_ids) != 1:
        raise Mistake("--id is for the fork of one run: name that run")
    edits = {name: json_of(f"--set {name}", value) for name, value in (tag_of("--set", each) for each in results)}
    input = None if given is None else json_of("--input", given)
    options: dict[str, Any] = {"version": new_version, "id": new_id, "reason": reason, "set": edits or None}
    options["at"] = int(at) if at is not None and at.isdigit() else at
    options["input"] = tuple(input) if isinstance(input, list) else input

    async def verb(engine: Engine, run_id: str) -> str:
        return (await engine.fork(run_id, **options)).id

    act_on(choice, Act(verb, "forked", ENDED_BADLY))
