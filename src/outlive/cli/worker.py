"""`outlive worker`: one worker process of a fleet, and how it stops.

The first SIGTERM or SIGINT asks: the worker claims nothing more, lets the steps that run finish within the grace,
releases everything that it owns in one commit and exits with 0. A store that is away keeps it for a few seconds more
than the grace: its supervisor has less patience than an outage. The second one does not ask: the process is gone at
once, with 128 + the signal, and other workers on its machine see that and go on.

A thread of its own hears them. A step that blocks the event loop keeps the loop from hearing anything, and Python's
own handlers run in the main thread, which is the blocked one: then not even the second signal would end the process.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import signal
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import click

from outlive.cli.completing import programs
from outlive.cli.edge import Mistake, counted, no_store, run, settings_with
from outlive.cli.values import seconds_of

if TYPE_CHECKING:
    from outlive.config.settings import Settings
    from outlive.engine import Engine
    from outlive.types import Work

RETRY_FIRST_SECONDS = 0.5
RETRY_MAX_SECONDS = 10.0
LACKING_SHOWN_MAX = 5
"""Flows that a worker names which it cannot run."""
LEFT_SECONDS = 2.0
"""How long threads of other libraries may keep the process after everything was released."""
SIGNALS = (signal.SIGTERM, signal.SIGINT)

log = logging.getLogger("outlive.worker")


@click.command()
@click.argument("app", required=False, shell_complete=programs)
@click.option("--store", "url", metavar="URL", help="Where the runs are.")
@click.option("--namespace", metavar="NAME", help="The tenant whose runs these are.")
@click.option("--lease", metavar="KIND", help="Who keeps the lease: store (default), none, or etcd://host:2379,...")
@click.option("--name", help="A name that is this worker's alone: it takes its own runs back when it is started again.")
@click.option(
    "--grace-seconds",
    type=click.FloatRange(0),
    metavar="SECONDS",
    help="How long steps may finish at the end.  [default: 20; with --for at most a quarter of it]",
)
@click.option(
    "--lease-seconds",
    type=click.FloatRange(1),
    metavar="SECONDS",
    help="After how long without a sign of life others take over.  [default: 10]",
)
@click.option(
    "--exit-when-stalled/--no-exit-when-stalled",
    default=None,
    help="Exit with 70 when a run has blocked the event loop for as long as a lease.  [default: exit]",
)
@click.option("--for", "lifetime", metavar="SPAN", help="End after this time, with everything released: 50s, 5m.")
@click.option("--until-idle", is_flag=True, help="End when nothing that this worker can do is due.")
@click.option("--runs-max", type=click.IntRange(1), metavar="N", help="Claim so many runs, and end with the last.")
@click.option("--queues", metavar="NAMES", help="Take from these queues only, in this order: emails,default.")
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    help="What to write to standard error.  [default: info]",
)
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    help="Lines for people, or one JSON object for each record.  [default: text]",
)
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65_535),
    metavar="PORT",
    help="Serve /metrics for Prometheus, /health/live and /health/ready there; 0 takes a free port.",
)
@click.option(
    "--metrics-host",
    metavar="ADDRESS",
    help="Where --metrics-port listens.  [default: 127.0.0.1]",
)
@click.option("--tracing", is_flag=True, help="Trace runs and steps with OpenTelemetry.")
def worker(
    *,
    app: str | None,
    url: str | None,
    namespace: str | None,
    lease: str | None,
    name: str | None,
    grace_seconds: float | None,
    lease_seconds: float | None,
    exit_when_stalled: bool | None,
    lifetime: str | None,
    until_idle: bool,
    runs_max: int | None,
    queues: str | None,
    log_level: str | None,
    log_format: str | None,
    metrics_port: int | None,
    metrics_host: str | None,
    tracing: bool,
) -> None:
    """Run the workflows of APP, and the flows of the store, until asked to stop.

    APP is a file (app.py), a module (shop.workflows), or either with the name of an Engine in it, or of a function that
    makes one (shop.app:engine). An engine of your own brings its own settings: codecs, limits, store; --name,
    --grace-seconds, --lease-seconds and --exit-when-stalled count for it all the same. Otherwise every workflow that
    the import defines is run on the store, and every flow there whose steps it has. Without APP: the flows that need
    no code.

    SIGTERM or SIGINT: claims nothing more, lets steps finish within the grace, releases every run so that others go on
    at once, exits with 0; about 5 seconds after the grace if the store is away. Once more: exits at once.

    With --for, --until-idle or --runs-max it ends by itself, with 0, and its last line says what happened and what is
    left: for cron, timers and functions. A step whose timeout does not fit into what is left is not begun, nor is one
    without a timeout in the grace at the end. If it never reached the store it exits with 1.

    What no option says is taken from OUTLIVE_... variables and from outlive.toml: see `outlive config show`.

    While the store cannot be reached, the worker waits for it. One line, `ready: ...`, goes to standard output when it
    works; logs go to standard error.
    """
    from outlive.cli.app import load

    module, found = (None, None) if app is None else load(app)
    flags = {
        "store": url,
        "namespace": namespace,
        "worker.lease": lease,
        "worker.name": name,
        "worker.grace_seconds": grace_seconds,
        "worker.lease_seconds": lease_seconds,
        "worker.exit_when_stalled": exit_when_stalled,
        "worker.queues": queues,
        "log.level": log_level,
        "log.format": log_format,
        "metrics.port": metrics_port,
        "metrics.host": metrics_host,
        "tracing.enabled": tracing or None,
    }
    seconds = None if lifetime is None else seconds_of("--for", lifetime)
    unless_given = dict(UNLESS_GIVEN)
    if seconds is not None:
        unless_given["grace_seconds"] = min(GRACE_SECONDS, seconds / 4)
    settings = settings_with(flags)
    handler = log_to_stderr(settings["log.level"], settings["log.format"])
    if app is None or isinstance(found, ModuleType):
        engine = engine_for(module, settings.engine_options(**unless_given) | traced(settings))
    else:
        given = {option: settings[setting] for setting, option in _OWN.items() if flags[setting] is not None}
        engine = engine_from(app, found, given)
    if settings["log.format"] == "json":
        handler.setFormatter(json_formatter(engine))
    port = settings["metrics.port"]
    metrics = None if port is None else (settings["metrics.host"], port)
    bounds = Bounds(seconds, until_idle=until_idle, runs_max=runs_max)
    run(work(engine, Stop(), bounds=bounds, metrics=metrics), is_service=True)


_OWN = {
    "worker.lease": "--lease",
    "store": "--store",
    "namespace": "--namespace",
    "worker.name": "name",
    "worker.grace_seconds": "grace_seconds",
    "worker.lease_seconds": "lease_seconds",
    "worker.exit_when_stalled": "exit_when_stalled",
    "worker.queues": "queues",
    "tracing.enabled": "middleware",
}
"""The settings that a person may change of an engine of the program's own; the lease, the store and tracing are
refused."""


def log_to_stderr(level: str, kind: str) -> logging.Handler:
    """Write the log, unless the program has configured that itself."""
    from outlive.cli.terminal import LineFormatter
    from outlive.integrations.logging import JsonFormatter

    handler = logging.StreamHandler()
    text = LineFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    handler.setFormatter(JsonFormatter() if kind == "json" else text)
    logging.basicConfig(level=level.upper(), handlers=[handler])
    return handler


def json_formatter(engine: Engine) -> logging.Formatter:
    """Hides what the engine hides."""
    from outlive.integrations.logging import JsonFormatter

    return JsonFormatter(redact=engine._redaction.fields)


def traced(settings: Settings) -> dict[str, Any]:
    """The option of an engine that traces, if the settings say so.

    Raises:
        Mistake: what it needs is not installed.
    """
    from importlib.util import find_spec

    from outlive.middleware import Tracing

    if not settings["tracing.enabled"]:
        return {}
    if (tracing := Tracing()).is_off or find_spec("opentelemetry.sdk") is None:
        raise Mistake("--tracing needs OpenTelemetry; install it: pip install 'outlive[otel]' opentelemetry-sdk")
    return {"middleware": [tracing]}


def engine_for(module: ModuleType | None, options: dict[str, Any]) -> Engine:
    """An engine that runs what the import has defined."""
    from outlive._kernel.define.own import RESERVED
    from outlive._kernel.define.registry import REGISTRY
    from outlive.engine import Engine
    from outlive.errors import OutliveError

    has_workflows = any(not name.startswith(RESERVED) for name in REGISTRY.definitions())
    if module is not None and not has_workflows and not REGISTRY.step_names():
        raise Mistake(f"{module.__name__} defines no workflow; decorate one with @outlive.workflow")
    if "url" not in options:
        raise Mistake(no_store())
    try:
        return Engine(**options)
    except OutliveError as error:
        raise Mistake(str(error)) from error


GRACE_SECONDS = 20.0
"""Less than what systemd (90 s) and Kubernetes (30 s) wait before they kill."""
UNLESS_GIVEN: Mapping[str, Any] = {"grace_seconds": GRACE_SECONDS, "exit_when_stalled": True}
"""Options of the worker that a process of its own has."""


def engine_from(app: str, found: Any, given: dict[str, Any]) -> Engine:
    """The engine that the program itself has made."""
    from outlive.engine import Engine
    from outlive.errors import OutliveError

    try:
        engine = found if isinstance(found, Engine) or not callable(found) else found()
    except OutliveError as error:
        raise Mistake(str(error)) from error
    if not isinstance(engine, Engine):
        raise Mistake(f"{app} is {type(engine).__name__} and neither an Engine nor a function that makes one")
    if not engine._has_worker:
        raise Mistake(f"{app} is an engine without a worker; leave out worker=False")
    if fixed := [option for option in given if option.startswith("--")]:
        raise Mistake(f"{app} has a store and leases of its own; give {', '.join(fixed)} to Engine(...) there")
    if "middleware" in given:
        raise Mistake(
            f"{app} has middleware of its own; give middleware=[outlive.middleware.Tracing()] to Engine(...) there"
        )
    if engine._worker.exit_when_stalled is None:
        given = {"exit_when_stalled": True, **given}
    try:
        engine._worker = replace(engine._worker, **given)
    except OutliveError as error:
        raise Mistake(str(error)) from error
    return engine


class Stopping(Protocol):
    """Knows when it is time to stop."""

    async def wait(self) -> None:
        """Wait for that."""


class Stop:
    """Whether this process was asked to stop, and how often."""

    def __init__(self, promise: str = "this worker claims nothing more and stops when its steps have ended") -> None:
        self._asked = asyncio.Event()
        self._promise = promise
        """The consequence of the first signal, in words for the log."""

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Hear signals meanwhile; entered on the event loop, in the main thread."""
        reader, writer = socket.socketpair()  # Windows takes no pipe here.
        writer.setblocking(False)
        # The interpreter writes the number of every signal there that has a handler, from whichever thread gets it.
        earlier = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
        before = {number: signal.signal(number, lambda number, frame: None) for number in SIGNALS}
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._hear, args=(reader, loop), name="outlive-signals", daemon=True).start()
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(earlier)
            writer.close()  # Ends the thread.

    @property
    def is_asked(self) -> bool:
        """Whether it was."""
        return self._asked.is_set()

    async def wait(self) -> None:
        """Wait for the first one."""
        await self._asked.wait()

    def _hear(self, reader: socket.socket, loop: asyncio.AbstractEventLoop) -> None:
        is_asked = False
        with reader:
            while numbers := reader.recv(64):
                for number in numbers:
                    if number not in SIGNALS:
                        continue
                    if is_asked:
                        os._exit(128 + number)
                    is_asked = True
                    with suppress(RuntimeError):  # The loop has ended, and the process is about to.
                        loop.call_soon_threadsafe(self._ask, number)

    def _ask(self, number: int) -> None:
        log.info("%s: %s; once more ends it at once", signal.Signals(number).name, self._promise)
        self._asked.set()


def leave_soon() -> None:
    """End the process before long, whatever its threads do; nothing is left to do."""
    # A thread of some library that waits for an answer would be waited for at the end of the interpreter, for ever.
    last = threading.Timer(LEFT_SECONDS, os._exit, [0])
    last.daemon = True
    last.start()


class Bounds(NamedTuple):
    """When a worker ends by itself."""

    seconds: float | None = None
    until_idle: bool = False
    runs_max: int | None = None

    @property
    def is_given(self) -> bool:
        """Whether it does at all."""
        return self != Bounds()


class Until:
    """Knows when a worker is asked to stop, or when its time is over."""

    def __init__(self, stop: Stop, work: Work) -> None:
        self._stop, self._work = stop, work

    async def wait(self) -> None:
        """See `Stopping`."""
        left = self._work.seconds_left
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stop.wait(), None if left == math.inf else left)


async def work(engine: Engine, stop: Stop, *, bounds: Bounds, metrics: tuple[str, int] | None = None) -> None:
    """Run what is due until it is time to stop; serve metrics at this host and port meanwhile."""
    from outlive.metrics.serving import MetricsServer

    bounded = None
    if bounds.is_given:
        bounded = engine.work(bounds.seconds, until_idle=bounds.until_idle, runs_max=bounds.runs_max)
    with stop.listening():
        server = MetricsServer(engine)
        if metrics is not None:
            # First: a probe must see that a worker lives that waits for its store.
            log.info("metrics are served at %s", await server.start(metrics[1], host=metrics[0]))
        if not await _entered(engine, stop, bounded):
            return
        try:
            if engine._parts.describer is not None:
                await engine._parts.describer.hurry()  # Programs that see the next line start runs by name.
            click.echo(f"ready: {_described(engine)}")
            await (stop.wait() if bounded is None else bounded.wait(asyncio.ensure_future(stop.wait())))
        finally:
            await (engine.__aexit__(None, None, None) if bounded is None else bounded.leave())
            server.close()
            leave_soon()
    log.info("this worker has stopped; %s ended here", counted(engine.counters.runs_ended, "run"))
    if bounded is not None:
        click.echo(f"done: {bounded.done}")


async def _entered(engine: Engine, stop: Stop, bounded: Work | None) -> bool:
    """Whether the engine works; false if the worker was asked to stop before.

    Raises:
        ClickException: the time of the worker is over, and it has not reached its store.
    """
    if bounded is None:
        return await enter(engine, stop)
    is_entered = await bounded.enter(partial(enter, engine, Until(stop, bounded)))
    if not is_entered and not stop.is_asked:
        raise click.ClickException("the time of this worker is over, and it has not reached its store")
    return bool(is_entered)


def _described(engine: Engine) -> str:
    from outlive.engine.url import shown

    worker = f"worker {engine._worker_name} (process {os.getpid()})"
    workflows = counted(len(engine._registry.runnable()), "workflow")
    return f"{worker} runs {workflows} on {shown(engine.url)}{_lacking(engine)}"


def _lacking(engine: Engine) -> str:
    """The flows in the store that this worker cannot run, and the steps that it would need for them."""
    from outlive._kernel.model.run import definition_shown

    lacking = []
    for definition, names in sorted(engine._registry.lacking().items()):
        name, _, version = definition.rpartition("@")
        lacking.append(f"{', '.join(sorted(names))} for flow {definition_shown(name, int(version))}")
    more = f"; and for {len(lacking) - LACKING_SHOWN_MAX} more" if len(lacking) > LACKING_SHOWN_MAX else ""
    return f"; it lacks {'; '.join(lacking[:LACKING_SHOWN_MAX])}{more}" if lacking else ""


async def enter(engine: Engine, stop: Stopping) -> bool:
    """Open the store and begin to work; as often as it takes, unless it is time to stop. Whether it worked."""
    from outlive.errors import StoreUnavailableError

    pause = RETRY_FIRST_SECONDS
    asked = asyncio.ensure_future(stop.wait())
    try:
        while not asked.done():
            entering = asyncio.ensure_future(engine.__aenter__())
            await asyncio.wait([entering, asked], return_when=asyncio.FIRST_COMPLETED)
            if not entering.done():
                entering.cancel()
                await asyncio.wait([entering])
                break
            try:
                await entering
            except StoreUnavailableError as error:
                log.error("%s; it is tried again in %g s", error, pause)
            else:
                return True
            await asyncio.wait([asked], timeout=pause)
            pause = min(RETRY_MAX_SECONDS, pause * 2)
    finally:
        asked.cancel()
    return False
