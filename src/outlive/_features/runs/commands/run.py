"""`outlive run`: start one run of a program and follow it, with a worker in this process.

The id is made from the name of the workflow and its arguments, unless one is given. So the same command finds the run
again that Ctrl-C, a crash or a reboot has cut off, and goes on with it. A run that has ended is not found like that:
the same command starts the next one, as people expect of a command that they give twice. With `--id` it is the other
way round: one id is one run, and after its end the command prints its result again.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from typing import TYPE_CHECKING, Any

import click

from outlive._features.flows.commands.files import app_option
from outlive.cli.advice import as_typed
from outlive.cli.completing import programs
from outlive.cli.edge import STUCK, Mistake, json_option, print_json, settings_with
from outlive.cli.edge import run as run_to_end
from outlive.cli.starting import options_of, start_options
from outlive.cli.values import json_of
from outlive.dev.place import DOCUMENTS, store_beside

if TYPE_CHECKING:
    from outlive._kernel.client.handle import RunHandle
    from outlive._kernel.define.workflow import Workflow
    from outlive._kernel.values.event import Event
    from outlive.engine import Engine

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")


@click.command()
@click.argument("app", metavar="APP:WORKFLOW|FLOW", shell_complete=programs)
@click.argument("arguments", default="", metavar="[JSON]")
@click.option("--input", "given", default="", metavar="JSON", help="The same as [JSON].")
@start_options()
@app_option
@click.option("--detach", is_flag=True, help="Only start it, for other workers, and print its id.")
@click.option(
    "--store",
    "url",
    envvar="OUTLIVE_STORE",
    show_envvar=True,
    metavar="URL",
    help="Where the run is kept; a file beside APP unless given.",
)
@click.option("--namespace", metavar="NAME", help="The tenant whose run it is.")
@json_option
def run(
    *,
    app: str,
    arguments: str,
    given: str,
    apps: tuple[str, ...],
    detach: bool,
    url: str | None,
    namespace: str | None,
    as_json: bool,
    **start: Any,
) -> None:
    """Start a run of a workflow or a flow, follow it to its end, and print its result.

    For example: outlive run app.py:order '{"id": 7}'

    APP is a file or a module; WORKFLOW is the name of a workflow in it, and may be left out if there is one. JSON is an
    object of arguments by name, or a list of them; for a workflow with one parameter it may be the argument itself.
    @FILE reads it from a file, - from standard input. A document of a flow (orders.flow.yaml) is run as
    `outlive flows run` does it.

    Ctrl-C stops the command, and the same command again goes on with the run; when the run has ended, it starts a new
    one. With --id the same command follows the same run for ever. Meanwhile this process is a worker of the store for
    the workflows of APP.

    Exit code 0: it has succeeded. 1: it has failed, timed out or was cancelled, or was refused. 2: the command is
    wrong. 3: it is parked. 130: Ctrl-C.
    """
    if arguments and given:
        raise Mistake("give the arguments once: as JSON behind the workflow, or with --input")
    if app.endswith(DOCUMENTS):
        given = arguments or given or "{}"
        place = _store_of_flow(url, namespace)
        _run_flow(app, given, place, apps=apps, detach=detach, as_json=as_json, **start)
        return
    if apps:
        raise Mistake("--app is for flows; a workflow is run as APP:WORKFLOW")
    values, options = json_of("JSON", arguments or given) if arguments or given else None, options_of(start)
    workflow = _workflow(app)
    settings = settings_with({"store": url, "namespace": namespace}).engine_options()
    is_configured = url is None and "url" in settings
    if "url" not in settings:
        settings["url"] = store_beside(app)
        click.echo(f"store {settings['url']}", err=True)
    if settings["url"].startswith("memory:"):
        raise Mistake("a run in memory ends with this command; give --store sqlite:orders.db")
    started = Started(workflow, arguments_of(workflow, values), options, as_json=as_json)
    from outlive.engine.url import shown

    started.store_option = "" if is_configured else f" --store {shown(settings['url'])}"
    sys.exit(run_to_end(started.start(settings) if detach else started.work(settings)))


def _store_of_flow(url: str | None, namespace: str | None) -> str | None:
    """Where a run of a flow is kept: what the flags or the configuration name; None if neither does."""
    from outlive.engine.namespace import in_namespace

    settings = settings_with({"store": url, "namespace": namespace})
    return None if settings["store"] is None else in_namespace(settings["store"], settings["namespace"])


def _run_flow(app: str, given: str, url: str | None, **options: Any) -> None:
    from outlive._features.flows.commands.runs import run_

    click.get_current_context().invoke(
        run_,
        flow_name=app,
        given=given,
        variables=(),
        overrides="",
        revision=None,
        url=url,
        **options,
    )


def _workflow(app: str) -> Workflow[..., Any]:
    from outlive._kernel.define.workflow import HasRuns, Workflow
    from outlive.cli.app import load

    module, found = load(app)
    if isinstance(found, HasRuns):
        return found.as_run
    if isinstance(found, Workflow):
        return found
    own = {it.spec.name: it for it in vars(module).values() if isinstance(it, Workflow)}
    source, _, name = app.partition(":")
    if name:
        raise Mistake(f"{app} is not a workflow; {_named(source, own)}")
    if len(own) != 1:
        raise Mistake(_named(source, own))
    return next(iter(own.values()))


def _named(source: str, own: dict[str, Any]) -> str:
    if not own:
        return f"{source} defines no workflow; decorate one with @outlive.workflow"
    return f"say which workflow: {', '.join(f'{source}:{name}' for name in sorted(own))}"


def arguments_of(workflow: Workflow[..., Any], values: Any) -> dict[str, Any] | list[Any]:
    """The arguments that a person gave, for `engine.start`: by name, or as a list if it is too long for that.

    An object is the arguments by name, unless the workflow has one parameter and the object does not name it. What is
    neither an object nor a list is the only argument.
    """
    names = [parameter.name for parameter in workflow.spec.signature.parameters]
    if isinstance(values, dict) and (len(names) != 1 or names[0] in values):
        return values
    listed = values if isinstance(values, list) else [] if values is None else [values]
    return listed if len(listed) > len(names) else dict(zip(names, listed, strict=False))


def id_of(workflow: str, arguments: dict[str, Any] | list[Any]) -> str:
    """The id of a run that has none of its own: the same for the same arguments, in whatever order they are named."""
    import msgspec

    digest = hashlib.sha256(msgspec.json.encode(arguments, order="deterministic")).hexdigest()
    return f"{_UNSAFE.sub('-', workflow)}-{digest[:12]}"


class Started:
    """One `outlive run`."""

    def __init__(
        self,
        workflow: Workflow[..., Any],
        arguments: dict[str, Any] | list[Any],
        options: dict[str, Any],
        *,
        as_json: bool,
    ) -> None:
        self._spec, self._arguments, self._as_json = workflow.spec, arguments, as_json
        # An id that was made up stands for what the command does now; one that a person gave stands for one run.
        own = {} if "id" in options else {"id": id_of(workflow.spec.name, arguments), "on_conflict": "attach_open"}
        self._options = own | options
        self._id: str = self._options["id"]
        self._last: Event | None = None
        self.store_option = ""
        """The option by which other commands find the run."""

    async def start(self, settings: dict[str, Any]) -> int:
        """Only start it, for other workers; the exit code."""
        from outlive.engine import Engine

        async with Engine(**(settings | {"worker": False})) as engine:
            handle = await self._start(engine)
        if self._as_json:
            print_json({"id": handle.id})
        else:
            click.echo(handle.id)
        return 0

    async def work(self, settings: dict[str, Any]) -> int:
        """Start it and follow it to its end; the exit code."""
        import asyncio

        from outlive._features.runs.commands.tail import follow
        from outlive.cli.run_log import without_own_lines
        from outlive.engine import Engine

        with without_own_lines(self._id):
            try:
                async with Engine(**settings) as engine:
                    handle = await self._start(engine)
                    if not self._as_json:
                        click.echo(f"run {handle.id}", err=True)
                    code = await follow(handle, self._say)
                    await self._end(handle, code)
                    return code
            except asyncio.CancelledError:
                click.echo(f"stopped; the same command goes on with run {self._id}", err=True)
                raise

    async def _start(self, engine: Engine) -> RunHandle[Any]:
        from outlive.errors import InvalidArgumentError

        try:
            return await engine.start(
                self._spec.name,
                self._arguments,
                version=self._spec.version,
                **self._options,
            )
        except InvalidArgumentError as error:
            if error.name != "arguments":
                raise
            given = "nothing" if not self._arguments else json.dumps(self._arguments)
            names = [parameter.name for parameter in self._spec.signature.parameters]
            example = ", ".join(f"{json.dumps(name)}: ..." for name in names)
            why = error.wanted.partition("; give the arguments")[0]
            raise Mistake(f"{self._spec.name} cannot be given {given}: {why}; it takes '{{{example}}}'") from error

    def _say(self, event: Event) -> None:
        from outlive._features.runs.commands.show import event_line

        self._last = event
        if not self._as_json:
            click.echo(event_line(event, self._id), err=True)

    async def _end(self, handle: RunHandle[Any], code: int) -> None:
        from outlive._features.runs.commands.show import print_failure

        last = self._last
        result, failure = (None, None) if last is None else (last.data.get("result"), last.failure)
        if self._as_json:
            status = await handle.status()
            error = None if failure is None else f"{failure.type}: {failure.message}"
            why = as_typed(await handle.why())
            print_json({"id": handle.id, "status": status, "result": result, "error": error, "why": why})
        elif code == 0:
            print_json(result)
        elif failure is not None:
            print_failure(failure, err=True)
        else:
            click.echo(as_typed(await handle.why()), err=True)
            if code == STUCK:
                command = f"outlive runs resume {handle.id}{self.store_option}"
                click.echo(f"when the cause is gone, `{command}` lets it go on", err=True)
