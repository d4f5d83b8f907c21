"""`outlive flows`: documents of flows, the library of them in a store, and their runs.

Exit codes are the same for all commands: 0, it is done; 1, Outlive refuses it, a document has problems, a test or a run
has failed; 2, the command is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from outlive._features.flows.commands.batch import batch
from outlive._features.flows.commands.files import app_option, check, import_, load_apps, new, read_file, schema
from outlive._features.flows.commands.runs import run_, step
from outlive._features.flows.commands.tests import test
from outlive.cli.edge import (
    HTTP,
    Group,
    by_option,
    json_option,
    new_engine,
    open_engine,
    person,
    place_option,
    print_file,
    print_json,
    print_table,
    run,
    say,
    server_flag,
    store_flag,
)

if TYPE_CHECKING:
    from outlive._features.flows.values import Flow
    from outlive._features.flows.verbs import Flows

T = TypeVar("T")

reason_option = click.option("--reason", default="", help="Why, for the history.")
expected_option = click.option(
    "--expected", type=click.IntRange(0), help="The revision that you have changed; 0 for a new flow."
)


@click.group(cls=Group)
def flows() -> None:
    """Check, test, run and publish flows.

    Exit codes: 0, done; 1, refused, or something has failed; 2, the command is wrong.
    """


for command in (check, schema, new, import_, test, run_, step, batch):
    flows.add_command(command)


def _ask(url: str, verb: Callable[[Flows], Coroutine[Any, Any, T]], *, creates: bool = False) -> T:
    """The answer of one verb of the library; `creates` if a store that is not there is made."""

    async def work() -> T:
        opened = new_engine(url) if creates and not url.startswith(HTTP) else open_engine(url)
        async with opened as engine:
            return await verb(engine.flows)

    return run(work())


def _say(info: Flow, what: str, *, as_json: bool) -> None:
    if as_json:
        print_json(info)
    else:
        click.echo(f"flow {info.name}: {what}")


# -- The library -------------------------------------------------------------------------------------------------------


@flows.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@by_option
@reason_option
@expected_option
@app_option
@place_option
@json_option
def apply(
    *,
    files: tuple[Path, ...],
    by: str,
    reason: str,
    expected: int | None,
    apps: tuple[str, ...],
    url: str,
    as_json: bool,
) -> None:
    """Check documents and publish them as the next revisions of their flows.

    What is published already changes nothing. Nothing is published if one of the FILES has a problem. With --app, what
    the steps of that program take is checked too.
    """
    by = person(url, by)
    load_apps(apps)
    texts = [read_file(file) for file in files]
    found = []

    async def work(library: Flows) -> None:
        before = {info.name: info.revision for info in await library.list()}
        for read in texts:
            info = await library.apply(read.text, by=by, reason=reason, expected=expected)
            found.append(info)
            if not as_json:
                is_new = before.get(info.name) != info.revision
                done = "published as" if is_new else "unchanged,"
                click.echo(f"{read.file}: flow {info.name} {done} revision {info.revision} ({info.hash})")

    _ask(url, work, creates=True)
    if as_json:
        print_json(found)


@flows.command("list")
@place_option
@json_option
def list_(*, url: str, as_json: bool) -> None:
    """List the flows of a store: what is published, by whom and since when, and which are disabled."""
    found = _ask(url, lambda library: library.list())
    if as_json:
        print_json(found)
        return
    if not found:
        click.echo("there are no flows in this store; publish one with `outlive flows apply FILE`")
        return
    print_table(["flow", "revision", "hash", "since", "by", "state"], [_row(info) for info in found])


def _row(info: Flow) -> list[str]:
    current = info.current
    state = "enabled" if info.is_enabled else info.why_disabled
    if info.draft is not None:
        state += f"; draft {info.draft.number} of revision {info.draft.base}"
    if current is None:
        return [info.name, "-", "-", "-", "-", state]
    return [info.name, str(current.number), current.hash, _shown(current.at), current.by or "-", state]


@flows.command()
@click.argument("name")
@place_option
@json_option
def history(*, name: str, url: str, as_json: bool) -> None:
    """List the revisions of a flow, the newest first: who published what, when, and why."""
    found = _ask(url, lambda library: library.history(name))
    if as_json:
        print_json(found)
        return
    rows = [[str(each.number), each.hash, _shown(each.at), each.by or "-", each.reason or "-"] for each in found]
    print_table(["revision", "hash", "at", "by", "reason"], rows)


@flows.command()
@click.argument("name")
@click.option("--to", type=click.IntRange(1), help="The revision to go back to; the one before unless given.")
@by_option
@reason_option
@expected_option
@place_option
@json_option
def rollback(*, name: str, to: int | None, by: str, reason: str, expected: int | None, url: str, as_json: bool) -> None:
    """Publish the document of an earlier revision again, as a new revision."""
    by = person(url, by)
    info = _ask(url, lambda library: library.rollback(name, to=to, by=by, reason=reason, expected=expected))
    current = info.current
    assert current is not None
    of = f" with the document of revision {current.rolled_back_to}" if current.rolled_back_to else ""
    _say(info, f"revision {current.number} is published{of} ({current.hash})", as_json=as_json)


@flows.command()
@click.argument("name")
@place_option
@json_option
def enable(*, name: str, url: str, as_json: bool) -> None:
    """Let a flow start runs again."""
    _say(_ask(url, lambda library: library.enable(name)), "it is enabled", as_json=as_json)


@flows.command()
@click.argument("name")
@by_option
@click.option("--reason", default="", help="Why.")
@place_option
@json_option
def disable(*, name: str, by: str, reason: str, url: str, as_json: bool) -> None:
    """Let a flow start no more runs; its triggers rest. Runs under way go on."""
    by = person(url, by)
    info = _ask(url, lambda library: library.disable(name, by=by, reason=reason))
    _say(info, f"it is {info.why_disabled}; runs under way go on", as_json=as_json)


@flows.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@by_option
@reason_option
@click.option("--expected", type=click.IntRange(0), help="The draft that you have changed; 0 for a new one.")
@place_option
@json_option
def draft(*, file: Path, by: str, reason: str, expected: int | None, url: str, as_json: bool) -> None:
    """Keep a document as the draft of its flow, without publishing it."""
    by = person(url, by)
    text = read_file(file, checks=False).text
    info = _ask(url, lambda library: library.save_draft(text, by=by, reason=reason, expected=expected), creates=True)
    assert info.draft is not None
    what = f"draft {info.draft.number} of revision {info.draft.base} is kept; publish it with `outlive flows publish`"
    _say(info, what, as_json=as_json)


@flows.command()
@click.argument("name")
@by_option
@reason_option
@expected_option
@app_option
@place_option
@json_option
def publish(
    *, name: str, by: str, reason: str, expected: int | None, apps: tuple[str, ...], url: str, as_json: bool
) -> None:
    """Check the draft of a flow and publish it; with --app, also what the steps of that program take."""
    by = person(url, by)
    load_apps(apps)
    info = _ask(url, lambda library: library.publish(name, by=by, reason=reason, expected=expected))
    _say(info, f"revision {info.revision} is published ({info.hash})", as_json=as_json)


@flows.command()
@click.argument("name")
@click.option("--force", is_flag=True, help="Also while runs of it are open; they go on to their ends.")
@click.option("--runs", is_flag=True, help="Delete its ended runs too, with everything of them.")
@by_option
@reason_option
@expected_option
@place_option
@json_option
def delete(
    *, name: str, force: bool, runs: bool, by: str, reason: str, expected: int | None, url: str, as_json: bool
) -> None:
    """Take a flow out of the library; its runs stay unless --runs is given."""
    by = person(url, by)
    _ask(
        url,
        lambda library: library.delete(name, force=force, runs=runs, by=by, reason=reason, expected=expected),
    )
    say(f"flow {name} is deleted", {"name": name, "deleted": True}, as_json=as_json)


@flows.command()
@click.argument("flow_name", metavar="NAME|FILE")
@click.option("--revision", type=click.IntRange(1), help="Of a stored flow; the published one unless given.")
@click.option("--draft", "is_draft", is_flag=True, help="The draft of a stored flow.")
@click.option("--run", "run_id", metavar="ID", help="With the state of this run in it; its flow is found by the run.")
@click.option(
    "--as",
    "form",
    type=click.Choice(["text", "source", "mermaid", "svg"]),
    default="text",
    show_default=True,
    help="How it is shown; `source` is the document as it was written.",
)
@click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="Write it to this file.")
@server_flag
@store_flag(help="For a stored flow or a run.")
@json_option
def show(
    *,
    flow_name: str,
    revision: int | None,
    is_draft: bool,
    run_id: str | None,
    form: str,
    output: Path | None,
    url: str | None,
    as_json: bool,
) -> None:
    """Show a flow as a graph: a file, a flow of the library, or either with the state of a run in it."""
    from outlive._features.flows.commands.shown import find_shown, shown_text

    found = run(find_shown(flow_name, url, revision=revision, is_draft=is_draft, run_id=run_id))
    if as_json:
        print_json(found.plain())
        return
    text = shown_text(found, form)
    if output is None:
        print_file(text)
    else:
        output.write_text(text, encoding="utf-8")
        click.echo(f"{output} is written")


def _shown(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S}"
