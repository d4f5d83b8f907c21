"""`outlive flows run` and `outlive flows step`: start a run of a flow and follow it, or try one step."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from outlive._features.flows.commands.files import ReadFile, app_option, file_named, load_apps, read_file
from outlive.cli.edge import HTTP, Mistake, json_option, open_engine, print_json, run, server_flag, store_flag
from outlive.cli.starting import options_of, start_options
from outlive.cli.values import json_of

if TYPE_CHECKING:
    from outlive._features.flows.document.model import Document
    from outlive._kernel.client.handle import RunHandle
    from outlive.engine import Engine

some_store_option = store_flag(
    help="Where the run is kept; a file is run in memory unless given, and is lost with this command then."
)
input_option = click.option(
    "--input",
    "given",
    default="{}",
    metavar="JSON",
    help="The input as JSON; @FILE reads it from a file, - from stdin.",
)
var_option = click.option(
    "--var", "variables", multiple=True, metavar="NAME=VALUE", help="A variable, as JSON or text; may be repeated."
)


def variables_of(variables: tuple[str, ...]) -> dict[str, Any]:
    """Variables by name; a value that is not JSON is text."""
    import msgspec

    found: dict[str, Any] = {}
    for variable in variables:
        name, equals, value = variable.partition("=")
        if not equals or not name:
            raise Mistake(f"--var {variable}: write it as NAME=VALUE")
        try:
            found[name] = msgspec.json.decode(value)
        except msgspec.DecodeError:
            found[name] = value
    return found


@asynccontextmanager
async def engine_for(url: str, *, has_worker: bool, flow: Any = None) -> AsyncIterator[Engine]:
    """An engine of this command; with a worker that has `flow`, if it is to run here."""
    from outlive._kernel.define.registry import REGISTRY
    from outlive.engine import Engine

    registry = REGISTRY.with_own_flows()
    if flow is not None:
        registry.set_flows([flow.spec], {flow.name: flow.version})
    async with Engine(url, worker=has_worker, _registry=registry) as engine:
        yield engine


@click.command("run")
@click.argument("flow_name", metavar="NAME|FILE")
@input_option
@var_option
@click.option("--overrides", default="", metavar="JSON", help="Changes of steps, as a JSON merge patch for each.")
@start_options()
@click.option("--revision", type=click.IntRange(1), help="Of a stored flow; the published one unless given.")
@app_option
@click.option("--detach", is_flag=True, help="Do not wait for its end; print its id.")
@server_flag
@some_store_option
@json_option
def run_(
    *,
    flow_name: str,
    given: str,
    variables: tuple[str, ...],
    overrides: str,
    revision: int | None,
    apps: tuple[str, ...],
    detach: bool,
    url: str | None,
    as_json: bool,
    **start: Any,
) -> None:
    """Start a run of a flow and follow it: a tree on a terminal, lines in a pipe. The output goes to stdout as JSON.

    A FILE is run by this command; a NAME is a flow of the store, run by its workers, or by this command too if --app is
    given. With --server it is a NAME, and its workers run it. Ctrl-C ends the command, and a run in a store goes on.

    Exit code 0: it has succeeded. 1: it has failed, or was refused. 2: the command is wrong.
    """
    load_apps(apps, file_named(flow_name))
    wanted = {"vars": variables_of(variables), "overrides": json_of("--overrides", overrides) if overrides else {}}
    input = json_of("--input", given)
    started = _Started(
        flow_name, input, wanted, options_of(start), revision, has_apps=bool(apps), detach=detach, as_json=as_json
    )
    from outlive.cli.run_log import without_own_lines

    with without_own_lines(started.run_id):
        sys.exit(run(started.work(url)))


class _Started:
    """One `outlive flows run`."""

    def __init__(
        self,
        name: str,
        input: Any,
        wanted: Mapping[str, Any],
        options: dict[str, Any],
        revision: int | None,
        *,
        has_apps: bool,
        detach: bool,
        as_json: bool,
    ) -> None:
        self._name, self._input, self._revision = name, input, revision
        self._options = {"id": options.get("id") or _new_id(), **options}
        self.run_id: str = self._options["id"]
        self._wanted = {key: value for key, value in wanted.items() if value}
        self._has_apps, self._detach, self._as_json = has_apps, detach, as_json

    async def work(self, url: str | None) -> int:
        """Start it and follow it; the exit code."""
        file = file_named(self._name)
        if url and url.startswith(HTTP) and (file is not None or self._has_apps):
            what = "a file is" if file is not None else "the steps of --app are"
            advice = "give --store URL, or `outlive flows apply` the file there and run the flow by its name"
            raise Mistake(f"{what} run by this command, and a server lets it run nothing; {advice}")
        if file is not None:
            return await self._run_file(file, url)
        if not url:
            raise Mistake(f"there is no file {self._name}; for a flow of a store give --store URL or --server URL")
        is_server = url.startswith(HTTP)
        async with open_engine(url) if is_server else engine_for(url, has_worker=self._has_apps) as engine:
            options = {"revision": self._revision, **self._options, **self._wanted}
            handle = engine.get((await engine.flows.start(self._name, self._input, **options)).id)
            document, _ = await engine.flows.document_of(await handle.info())
            return await self._follow(engine, handle, document)

    def _refuse_without_steps(self, read: ReadFile) -> None:
        """Refuse a document whose steps no program that was named defines."""
        from outlive._features.flows.library.reading import read_document
        from outlive.errors.document import FlowError

        try:
            read_document(read.text, file=read.file, knows_steps=True)
        except FlowError as error:
            problems = "\n".join(problem.shown(read.file) for problem in error.problems)
            if not self._has_apps:
                problems += f"\nname the program that defines the steps: outlive flows run {self._name} --app app.py"
            raise Mistake(problems) from error

    async def _run_file(self, file: Path, url: str | None) -> int:
        from outlive._features.flows.flow import FlowWorkflow

        self._refuse_without_steps(read_file(file, warns=False))
        document = read_file(file).document
        flow = FlowWorkflow(document, file=str(file))
        if url is None and not self._as_json:
            click.echo("no --store is given: this run is in memory, and is lost with this command", err=True)
        async with engine_for(url or "memory:", has_worker=True, flow=flow) as engine:
            handle = await engine.start(flow.bind(self._input, **self._wanted), **self._options)
            if self._detach and url is None:
                raise Mistake("--detach needs a store in which the run goes on: give --store URL")
            return await self._follow(engine, handle, document)

    async def _follow(self, engine: Engine, handle: RunHandle[Any], document: Document) -> int:
        if self._detach:
            if self._as_json:
                print_json({"id": handle.id})
            else:
                click.echo(handle.id)
            return 0
        from outlive._features.flows.commands.follow import Follower

        follower = Follower(engine, handle, document, says=not self._as_json)
        await follower.follow()
        return await self._end(handle, follower)

    async def _end(self, handle: RunHandle[Any], follower: Any) -> int:
        from outlive.errors import OutliveError

        info = await handle.info()
        output, error = None, None
        try:
            output = await handle.result()
        except OutliveError as failed:
            error = str(failed)
        if self._as_json:
            plain = {"id": handle.id, "status": info.status, "output": output, "error": error}
            print_json(plain | {"steps": follower.plain()})
        elif error is None:
            print_json(output)
        else:
            failed_at = follower.failed_at()
            # The line of the step has the error already.
            click.echo(f"run {handle.id} failed at step {failed_at}" if failed_at else error, err=True)
        return 0 if error is None else 1


def _new_id() -> str:
    from outlive._kernel.runtime.clock import SystemClock

    return SystemClock().new_id()


@click.command()
@click.argument("flow_name", metavar="NAME|FILE")
@click.argument("step_id", metavar="STEP")
@input_option
@var_option
@click.option("--steps", "results", default="{}", metavar="JSON", help="Results of the steps that it refers to, by id.")
@click.option("--with", "arguments", metavar="JSON", help="Its arguments, in the place of those in the document.")
@app_option
@server_flag
@store_flag(help="Where a flow with a NAME is.")
@json_option
def step(
    *,
    flow_name: str,
    step_id: str,
    given: str,
    variables: tuple[str, ...],
    results: str,
    arguments: str | None,
    apps: tuple[str, ...],
    url: str | None,
    as_json: bool,
) -> None:
    """Run one step of a flow with given data, here and now, in memory; print its result.

    The step is called for real. Other steps are not: the steps that it refers to have the results in --steps.

    Exit code 0: it has returned. 1: it has failed. 2: the command is wrong, or a result is missing.
    """
    load_apps(apps, file_named(flow_name))
    scope = (json_of("--input", given), variables_of(variables), json_of("--steps", results))
    arguments_given = None if arguments is None else json_of("--with", arguments)
    sys.exit(run(_step(flow_name, step_id, *scope, arguments_given, url, as_json=as_json)))


async def _step(
    name: str,
    step_id: str,
    input: Any,
    variables: dict[str, Any],
    results: Any,
    arguments: Any,
    url: str | None,
    *,
    as_json: bool,
) -> int:
    from outlive._features.flows.flow import FlowWorkflow
    from outlive._features.flows.run.mocking import one_step
    from outlive.errors import InvalidArgumentError, OutliveError

    document = await _document(name, url)
    if not isinstance(results, dict):
        raise Mistake('--steps: give an object, for example {"reserve": {"id": 7}}')
    try:
        flow = FlowWorkflow(one_step(document, step_id, results, arguments))
        flow.check()
    except InvalidArgumentError as error:
        raise Mistake(error.wanted) from None
    async with engine_for("memory:", has_worker=True, flow=flow) as engine:
        try:
            found = await (await engine.start(flow.bind(input, vars=variables))).result()
        except OutliveError as error:
            if as_json:
                print_json({"step": step_id, "error": str(error.__cause__ or error)})
            else:
                click.echo(f"step {step_id} failed: {error.__cause__ or error}", err=True)
            return 1
    print_json({"step": step_id, "result": found} if as_json else found)
    return 0


async def _document(name: str, url: str | None) -> Document:
    if (file := file_named(name)) is not None:
        return read_file(file).document
    if not url:
        raise Mistake(f"there is no file {name}; for a flow of a store give --store URL or --server URL")
    async with open_engine(url) as engine:
        document: Document = (await engine.flows.get(name)).document
        return document
