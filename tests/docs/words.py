"""The page of words: each act as Python, the HTTP API and the command line call it.

Most of it follows from the names: `engine.queues.pause` is `queues.pause` over HTTP and `outlive queues pause`. Only
names that differ stand here, and the reasons why an act is there in one way only.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping

import click

from outlive._kernel.client.contract import LinkVerbs
from outlive.cli import main
from outlive.engine import Engine
from outlive.engine.any_engine import AnyEngine
from outlive.http import operations  # noqa: F401  (importing it declares them)
from outlive.http.operation import OPERATIONS
from outlive.types import Batch, BulkOperation, RunHandle
from tests.docs import public

PATH = "reference/words.md"
HEAD = """An act has one name: `engine.queues.pause`, the operation `queues.pause`, and `outlive queues pause`;
the tables have the few that differ. Verbs of runs are the engine's own in Python, and below `runs` elsewhere. `run`,
`batch` and `operation` are handles, which Python gives. Parameters, fields and options have the same names too:
`reason=`, `"reason"`, `--reason`."""
HANDLES = {"run": RunHandle, "batch": Batch, "operation": BulkOperation}
"""The handles, by what a program calls them."""
SPACES = {"run": "runs", "batch": "batches", "operation": "bulk"}
"""The namespace of each handle."""

PYTHON = {
    "engine.start_batch": "batches.start",
    "engine.get": "handle",
    "engine.batches.get": "handle",
    "engine.bulk.get": "handle",
    "engine.purge": "bulk.purge",
    "engine.health": "health.get",
    "engine.import_run": "runs.import",
    "engine.asgi": "serve",
    "engine.work": "worker",
    "engine.approvals.links.create": "approvals.create_link",
    "engine.approvals.links.use": "approvals.use_link",
    "engine.flows.document_of": "runs.document",
    "engine.quotas.set": "namespaces.quota",
    "engine.quotas.get": "namespaces.quota",
    "engine.quotas.usage": "namespaces.quota",
    "run.status": "runs.info",
    "run.until": "runs.info",
    "run.watch": "runs.published",
    "run.stream": "runs.follow_stream",
    "run.answer": "asks.answer",
    "run.approve": "approvals.approve",
    "run.reject": "approvals.reject",
    "run.dead_letters": "dead_letters.list",
    "run.inbox": "inbox.list",
    "batch.status": "batches.info",
    "batch.results": "batches.outcomes",
    "batch.failures": "batches.outcomes",
    "batch.result": "runs.result",
    "batch.cancel": "runs.cancel",
    "operation.result": "bulk.progress",
    "operation.cancel": "runs.cancel",
}
"""Verbs that are called otherwise than their operation."""
COMMANDS = {
    "run": "runs.start",
    "serve": "serve",
    "worker": "worker",
    "signal": "runs.signal",
    "ask": "runs.ask",
    "approve": "approvals.approve",
    "reject": "approvals.reject",
    "check-deploy": "deploys.journals",
    "runs approve": "approvals.approve",
    "runs reject": "approvals.reject",
    "runs show": "runs.info",
    "runs skip": "runs.skip_step",
    "runs tail": "runs.follow",
    "runs operations": "bulk.list",
    "runs purge": "bulk.purge",
    "batches show": "batches.info",
    "flows run": "flows.start",
    "flows batch": "batches.start",
    "flows draft": "flows.save_draft",
    "flows show": "flows.get",
    "flows step": "runs.start",
}
"""Commands that are called otherwise than their operation."""
FORMS = {
    "engine.cancel(tags=...)": "bulk.cancel",
    "engine.retry(tags=...)": "bulk.retry",
    "engine.pause(tags=...)": "bulk.pause",
    "engine.resume(tags=...)": "bulk.resume",
    "engine.pause(workflow=...)": "workflows.pause",
    "engine.resume(workflow=...)": "workflows.resume",
    "engine.pause(all=True)": "store.pause",
    "engine.resume(all=True)": "store.resume",
    'engine.bulk.start("purge")': "bulk.start_purge",
    "outlive.metrics.exposition(engine)": "health.metrics",
    "outlive.testing.check_deploy(...)": "deploys.journals",
    "outlive.flow.parse(text)": "flows.check",
    "outlive runs cancel --tag": "bulk.cancel",
    "outlive runs retry --tag": "bulk.retry",
    "outlive runs pause --tag": "bulk.pause",
    "outlive runs resume --tag": "bulk.resume",
    "outlive runs pause --workflow": "workflows.pause",
    "outlive runs resume --workflow": "workflows.resume",
    "outlive runs pause --all": "store.pause",
    "outlive runs resume --all": "store.resume",
    "outlive runs list --stuck": "runs.list_stuck",
    "outlive runs show --history": "runs.history",
    "outlive flows show --run": "runs.document",
}
"""What a verb or a command does with a certain parameter, where that is an operation of its own."""

ALONE = {
    "handle": "makes a handle, and asks for nothing",
    "audit.acting": "says who acts in a block of code; a server knows it by the key",
    "engine.checkpoints": "programs that keep their own state in the store call these",
    "engine.configured": "makes an engine of the settings, as commands do by themselves",
    "engine.lifespan": "runs an engine in an application",
    "api": "describes the API itself",
    "health": "a probe asks for it",
    "me.get": "tells a client what its key may do",
    "overview.get": "the figures of the dashboard",
    "deploys.documents": "`outlive check-deploy` asks for it beside `deploys.journals`",
    "approvals.show_link": "a person opens it",
    "runs.create_token": "gives a page of a browser what it may hold",
    "runs.delete": "the dashboard deletes one run; `bulk.purge` deletes runs by a filter",
    "runs.follow_list": "the dashboard and the client in TypeScript follow lists",
    "runs.graph": "a picture for the dashboard",
    "runs.tree": "the dashboard draws the tree of a run",
    "runs.payload": "a value that is too large for a page of the history",
    "runs.streams": "the names of the streams that `runs.follow_stream` has",
    "workflows.get": "one workflow of `workflows.list`",
    "workflows.graph": "a picture for the dashboard",
    "flows.graph": "a picture for the dashboard",
    "dev": "runs code, for a person at a keyboard",
    "demo": "a show, with a store of its own",
    "check": "reads source code",
    "flows.new": "works on files",
    "flows.test": "works on files",
    "flows.schema": "works on files",
    "flows.import": "works on files",
    "backup": "copies a whole store, below the verbs",
    "fsck": "reads a whole store, below the verbs",
    "migrate": "changes the schema of a store; in Python entering an engine does it",
    "move": "copies a whole store into another one, below the verbs",
    "namespaces.list": "looks into all namespaces of a store, and an engine is in one",
    "config": "is about the settings of this machine",
    "doctor": "is about this machine: its settings, its Python, its clock and its disk",
    "completion": "prints a script for a shell",
}
"""Acts that are there in one way only, or all that begin so, with the reason."""
TITLES = {
    "runs": "Runs",
    "bulk": "Many runs",
    "store": "Everything in a store",
    "deploys": "Deploying",
    "asks": "Asks",
    "dead_letters": "Dead letters",
    "health": "Health",
    "serve": "Serving",
}


def verbs() -> dict[str, str]:
    """Every verb of an engine, of its namespaces and of handles, with the act that it is."""
    found = {f"engine.{name}": f"runs.{name}" for name in _methods(AnyEngine) | _methods(Engine)}
    for space, kind in {**public.spaces_in(Engine), "approvals.links": LinkVerbs}.items():
        found |= {f"engine.{space}.{name}": f"{space}.{name}" for name in _methods(kind)}
    for handle, kind in HANDLES.items():
        found |= {f"{handle}.{name}": f"{SPACES[handle]}.{name}" for name in _methods(kind)}
    return {name: PYTHON.get(name, act) for name, act in found.items()}


def commands(group: click.Command = main, path: tuple[str, ...] = ()) -> dict[str, str]:
    """Every command, by the words that a person types, with the act that it is."""
    if not isinstance(group, click.Group):
        return {" ".join(path): COMMANDS.get(" ".join(path), ".".join(path).replace("-", "_"))}
    context, found = click.Context(group), dict[str, str]()
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        found |= commands(command, (*path, name))
    return found


def acts() -> dict[str, tuple[list[str], list[str], list[str]]]:
    """What is done, by its name, with its words in Python, over HTTP and on the command line."""
    found: dict[str, tuple[list[str], list[str], list[str]]] = {name: ([], [name], []) for name in OPERATIONS}
    for verb, act in verbs().items():
        found.setdefault(act, ([], [], []))[0].append(verb)
    for command, act in commands().items():
        found.setdefault(act, ([], [], []))[2].append(f"outlive {command}")
    for form, act in FORMS.items():
        found.setdefault(act, ([], [], []))[2 if form.startswith("outlive ") else 0].append(form)
    return found


def reason_of(act: str, words: tuple[list[str], list[str], list[str]]) -> str:
    """Why an act is there in one way only; empty if the table does not say."""
    names = [act, *words[0]]
    return next((reason for name, reason in ALONE.items() for it in names if f"{it}.".startswith(f"{name}.")), "")


def is_alone(words: tuple[list[str], list[str], list[str]]) -> bool:
    """Whether only Python, only HTTP or only the command line has the act."""
    return sum(bool(each) for each in words) == 1


def unknown_in(advice: str) -> str:
    """The word of a command that the command line does not know; empty if it knows all of them."""
    command: click.Command = main
    for word in advice.split():
        if word.startswith("--"):
            if not any(word in option.opts for option in command.params):
                return word
        elif isinstance(command, click.Group):
            found = command.get_command(click.Context(command), word)
            if found is None:
                return word
            command = found
    return ""


def parts(links: Mapping[str, tuple[str, str]]) -> Iterator[str]:
    """The page: a table for each namespace, and what is there in one way only."""
    sections: dict[str, list[str]] = {}
    alone: list[str] = []
    for act, words in sorted(acts().items()):
        shown = [_python(words[0], links), _operations(words[1]), _codes(sorted(words[2]))]
        if is_alone(words):
            alone.append(f"| {next(filter(None, shown))} | {reason_of(act, words)} |")
        else:
            sections.setdefault(act.partition(".")[0], []).append(f"| {' | '.join(shown)} |")
    titles = {space: TITLES.get(space, space.title()) for space in sections}
    for space in sorted(sections, key=lambda it: (it != "runs", titles[it])):
        head = [f"## {titles[space]}", "", "| Python | HTTP | Command |", "|---|---|---|"]
        yield "\n".join([*head, *sections[space]])
    yield "\n".join(["## In one way only", "", "| | Why |", "|---|---|", *alone])


def _methods(kind: type) -> set[str]:
    """The verbs of a class."""
    if kind is AnyEngine:
        return {name for name, it in vars(kind).items() if inspect.isfunction(it) and not name.startswith("_")}
    return {name for name, it in public.members_of(kind) if not isinstance(it, property)}


def _python(names: list[str], links: Mapping[str, tuple[str, str]]) -> str:
    shown: list[str] = []
    for name in sorted(names, key=lambda it: (it.split(".")[0] in HANDLES, it)):
        handle, _, rest = name.partition(".")
        target = f"{HANDLES[handle].__name__}.{rest}" if handle in HANDLES else name.removeprefix("outlive.")
        path, anchor = links.get(target.partition("(")[0], ("", ""))
        shown.append(f"[`{name}`]({path.removeprefix('reference/')}#{anchor})" if path else f"`{name}`")
    return ", ".join(shown)


def _operations(names: list[str]) -> str:
    return ", ".join(f"`{name}`: `{OPERATIONS[name].method} {OPERATIONS[name].path}`" for name in names)


def _codes(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
