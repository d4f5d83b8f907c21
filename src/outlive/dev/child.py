"""The worker process of `outlive dev`.

It imports the program, reports what it has found, waits for `GO`, and works until the socket to the other process ends.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import signal
import socket
import sys
import traceback
from contextlib import suppress
from inspect import Parameter
from pathlib import Path
from types import ModuleType
from typing import Any

import click

import outlive
from outlive._features.flows.commands.files import ReadFile, read_file
from outlive._interrupts import run_to_end
from outlive._kernel.define.workflow import Workflow
from outlive.cli.app import load
from outlive.cli.edge import settings_with
from outlive.cli.worker import engine_for, engine_from, enter, leave_soon, log_to_stderr
from outlive.dev.message import GO, Imported, Loaded, Message, Ready, Refused, Stopped, encode
from outlive.dev.parked import try_again
from outlive.dev.place import Places, documents_in
from outlive.dev.watch import imported_files
from outlive.engine import Engine
from outlive.engine.url import shown

GRACE_SECONDS = 1.0
"""How long steps may finish before the next process takes over; a step that needs longer runs again there."""
REPORT_SECONDS = 1.0
PUBLISHER = "outlive dev"
_NAMED = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)


class Program:
    """The program that the process has imported and read: an engine, and the documents to publish."""

    def __init__(self, places: Places, *, url: str | None, namespace: str | None, level: str | None) -> None:
        module, found = (None, None) if places.app is None else load(places.app)
        settings = settings_with(
            {
                "store": url,
                "namespace": namespace,
                "log.level": level,
            }
        )
        log_to_stderr(settings["log.level"], settings["log.format"])
        if places.app is None or isinstance(found, ModuleType):
            options = settings.engine_options(grace_seconds=GRACE_SECONDS, exit_when_stalled=True)
            self.engine = engine_for(module, options)
            self._notes = _own_engine(places.app, module)
        else:
            self.engine = engine_from(places.app, found, {"grace_seconds": GRACE_SECONDS})
            self._notes = []
        self.documents = [(file, read_file(file, warns=False)) for file in documents_in(places.flows)]
        lacking = [(read, problem) for _, read in self.documents if (problem := _lacking(read))]
        self._not_run_here = {read.document.name for read, _ in lacking}
        self._notes += [f"{problem}; no worker of this command can run the flow" for _, problem in lacking]
        if lacking and places.app is None:
            self._notes.append("name the program that defines the steps: outlive dev app.py FLOWS")
        self._example = example_of(places.app, module, store=_unknown_to_run(self.engine.url, places))

    def described(self, files: set[str]) -> Loaded:
        """The facts about it that the other process needs."""
        engine = self.engine
        names = {spec.name for spec in engine._registry.runnable()}
        names |= {read.document.name for _, read in self.documents} - self._not_run_here
        return Loaded(
            store=engine.url,
            redact=sorted(engine._redaction.fields),
            workflows=sorted(names),
            example=self._example,
            files=sorted(files | {str(file.resolve()) for file, _ in self.documents}),
        )

    async def publish(self) -> list[str]:
        """Publish the documents that are not what the store has; what a person should know of it, line by line."""
        notes = list(self._notes)
        before = {info.name: info.revision for info in await self.engine.flows.list()}
        for file, read in self.documents:
            info = await self.engine.flows.apply(read.text, by=PUBLISHER)
            if before.get(info.name) != info.revision:
                notes.append(f"{file}: flow {info.name} published as revision {info.revision}")
        return notes


def _own_engine(app: str | None, module: ModuleType | None) -> list[str]:
    """Say so if the program has an engine, which is not the worker here."""
    names = [] if module is None else [name for name, it in vars(module).items() if isinstance(it, Engine)]
    note = (
        f"{app} has an Engine of its own; `outlive dev {app}:{names[0]}` uses that one and its store" if names else ""
    )
    return [note] if note else []


def _lacking(read: ReadFile) -> str:
    """The first step of a document that the program does not define, in words; empty if it defines them all."""
    from outlive._features.flows.library.reading import read_document
    from outlive.errors.document import FlowError

    try:
        read_document(read.text, file=read.file, knows_steps=True)
    except FlowError as error:
        return error.problems[0].shown(read.file).replace(", and no built-in is called so", "")
    return ""


def _unknown_to_run(url: str, places: Places) -> str | None:
    """The store, if `outlive run` would take another one."""
    configured = settings_with({})["store"] or places.default_store()
    return None if url == configured else shown(url) if url.startswith("sqlite:") else "URL"


def example_of(app: str | None, module: ModuleType | None, *, store: str | None) -> str:
    """A command that starts a run of the first workflow of a program; empty if it has none of its own."""
    own = [] if module is None else [it for it in vars(module).values() if isinstance(it, Workflow)]
    if app is None or not own:
        return ""
    needed = [it.name for it in own[0].spec.signature.parameters if it.default is it.empty and it.kind in _NAMED]
    words = ["outlive", "run", f"{app.partition(':')[0]}:{own[0].spec.name}"]
    if needed:
        words.append(f"'{{{', '.join(f'{json.dumps(name)}: ...' for name in needed)}}}'")
    return " ".join([*words, *(["--store", store] if store else [])])


class Line:
    """The socket to the other process."""

    def __init__(self, number: int) -> None:
        self._socket = socket.socket(fileno=number)

    def tell(self, message: Message) -> None:
        """Tell the other process something; one that is gone hears nothing."""
        with suppress(OSError):
            self._socket.sendall(encode(message) + b"\n")

    def wait_for_go(self) -> bool:
        """Wait until it is time to work; False if it is time to end instead."""
        with suppress(OSError):
            return self._socket.recv(len(GO)) == GO
        return False

    async def end(self) -> None:
        """Wait until it is time to end."""
        loop = asyncio.get_running_loop()
        self._socket.setblocking(False)
        with suppress(OSError):
            while await loop.sock_recv(self._socket, 16):
                pass


class AskedToStop:
    """The question of `enter` of the command `worker`: whether it is time to stop."""

    def __init__(self, line: Line) -> None:
        self._ended = asyncio.ensure_future(line.end())
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._ended.cancel)

    async def wait(self) -> None:
        """Wait for it."""
        await asyncio.wait([self._ended])


async def work(program: Program, line: Line) -> None:
    """Run what is due until it is time to stop."""
    engine, stop = program.engine, AskedToStop(line)
    if not await enter(engine, stop):
        return
    reporting = asyncio.ensure_future(_report(line))
    try:
        notes = [*await program.publish(), *await try_again(engine)]
        if engine._parts.describer is not None:
            await engine._parts.describer.hurry()  # The dashboard offers to start what the store knows of.
        line.tell(Ready(notes=notes))
        await stop.wait()
    finally:
        reporting.cancel()
        await engine.__aexit__(None, None, None)
        line.tell(Stopped())
        leave_soon()


async def _report(line: Line) -> None:
    """Name the files that are imported later, in a function or by a step."""
    known, count = imported_files(), len(sys.modules)
    while True:
        await asyncio.sleep(REPORT_SECONDS)
        if len(sys.modules) != count:
            count = len(sys.modules)
            if new := imported_files() - known:
                known |= new
                line.tell(Imported(files=sorted(new)))


def explained(error: click.ClickException) -> str:
    """Why the program cannot be used: what Python says about it, without the frames that are ours."""
    cause = error.__cause__
    if isinstance(cause, SyntaxError):
        return "".join(traceback.format_exception_only(cause)).rstrip()
    frames = [it for it in traceback.extract_tb(cause.__traceback__) if _is_own(it.filename)] if cause else []
    if cause is None or isinstance(cause, SystemExit) or not frames:
        return error.format_message()
    lines = [*traceback.format_list(frames), *traceback.format_exception_only(cause)]
    return "".join(["Traceback (most recent call last):\n", *lines]).rstrip()


def _is_own(file: str) -> bool:
    """Whether a file belongs to the user, and not to the machinery of imports."""
    is_machinery = file.startswith("<frozen") or file == importlib.__file__
    return not is_machinery and not file.startswith(str(Path(outlive.__file__).parent))


def named_files(error: BaseException) -> set[str]:
    """The files that an error comes from, so that mending one of them is noticed."""
    found: set[str] = set()
    cause: BaseException | None = error
    while cause is not None:
        found |= {it.filename for it in traceback.extract_tb(cause.__traceback__)}
        if isinstance(cause, SyntaxError) and cause.filename:
            found.add(cause.filename)
        cause = cause.__cause__
    return {str(Path(file).resolve()) for file in found if file.endswith(".py") and Path(file).is_file()}


@click.command()
@click.argument("number", type=int)
@click.argument("names", nargs=-1)
@click.option("--store", "url")
@click.option("--namespace")
@click.option("--log-level", "level")
def main(*, number: int, names: tuple[str, ...], **options: Any) -> None:
    """Be the worker process."""
    line = Line(number)
    places = Places.of(names)
    options = {"url": options["url"], "namespace": options["namespace"], "level": options["level"]}
    try:
        program = Program(places, **options)
    except click.ClickException as error:
        line.tell(Refused(error=explained(error), files=sorted(imported_files() | named_files(error))))
        sys.exit(1)
    line.tell(program.described(imported_files()))
    if line.wait_for_go():
        with asyncio.Runner() as runner:
            run_to_end(runner, work(program, line))
