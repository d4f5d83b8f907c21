"""Requests with large and twisted values that fit a type, to each operation that holds a value against a schema.

A value that does not fit is refused at its first mistake, so what a check costs shows with values that do. Each is
used up by the request that it is sent with: `TYPED` has a function for each operation, which prepares the store.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import msgspec

from outlive.engine import Engine
from outlive.engine.view import view_of
from outlive.http.nesting import CONTAINERS_MAX
from proof.http import program
from proof.http.requests import run_of

SPARE = 1_000
"""Maps and lists around the hostile part of a body."""
DEPTH = 85
"""Of a rule; a body may be 100 levels deep."""


class Ready(NamedTuple):
    """Where to send a value, and in what."""

    names: dict[str, str]
    wrap: Callable[[Any], Any]


Prepare = Callable[[Engine, str], Awaitable[Ready]]


def rule(depth: int) -> bytes:
    """A rule with its tags last, as a sender may write it."""
    leaf = b'{"value":1,"type":"lit"}'
    return b'{"left":' * depth + leaf + b',"right":%s,"type":"and"}' % leaf * depth


def _rules(depth: int) -> Callable[[int], bytes]:
    def make(length: int) -> bytes:
        part, containers = rule(depth), 2 * depth + 1
        count = max(1, min(length // len(part), (CONTAINERS_MAX - SPARE) // containers))
        return b'{"rules":[%s]}' % b",".join([part] * count)

    return make


def _numbers(length: int) -> bytes:
    return b'{"numbers":[%s1]}' % (b"1," * (length // 2))


def _names(length: int) -> bytes:
    return b'{"settings":{%s}}' % b",".join(b'"name_%d":1' % number for number in range(length // 15))


FITTING: dict[str, Callable[[int], bytes]] = {
    "numbers": _numbers,
    "names": _names,
    "short rules": _rules(0),
    "rules": _rules(3),
    "deep rules": _rules(DEPTH),
    "one deep rule": lambda _: _rules(DEPTH)(0),
}
"""Values that fit `Typed`."""


def _plain(wrap: Callable[[Any], Any], **names: str) -> Prepare:
    async def prepare(engine: Engine, word: str) -> Ready:
        return Ready({name: it.replace("WORD", word) for name, it in names.items()}, wrap)

    return prepare


def _on_run(workflow: Any, wrap: Callable[[Any], Any], *arguments: Any, **names: str) -> Prepare:
    async def prepare(engine: Engine, word: str) -> Ready:
        return Ready({"run_id": await run_of(engine, workflow, *arguments, id=word), **names}, wrap)

    return prepare


async def _on_promise(engine: Engine, word: str) -> Ready:
    run_id = await run_of(engine, program.proof_typed_promising, id=word)
    shown: Any = await view_of(engine).plain((await view_of(engine).row(run_id)).published)
    return Ready({"promise_id": shown["promise"]}, lambda value: {"value": value})


async def _on_link(engine: Engine, word: str) -> Ready:
    run_id = await run_of(engine, program.proof_typed_form, id=word)
    link = await engine.approvals.links.create(run_id, "typed", approved=True, by="ann")
    return Ready({"token": link.token}, lambda value: {"form": value})


async def _on_task(engine: Engine, word: str) -> Ready:
    await engine.start(program.proof_typed_remote, 1, id=word)
    task = await engine.tasks.claim("proof-typed", ["proof_measure"], worker="proof", lease_seconds=600, wait=20)
    assert task is not None, f"no task of {word}"
    return Ready({"task_id": task.id}, lambda value: {"lease": task.lease, "output": value})


def _start(value: Any) -> dict[str, Any]:
    return {"workflow": "proof_typed", "arguments": {"value": value}}


TYPED: dict[str, Prepare] = {
    "approvals.approve": _on_run(program.proof_typed_form, lambda value: {"form": value, "by": "ann"}, name="typed"),
    "approvals.use_link": _on_link,
    "batches.start": _plain(lambda value: {"workflow": "proof_typed", "rows": [value]}),
    "events.send": _plain(lambda value: {"type": "proof.typed", "data": value}),
    "promises.resolve": _on_promise,
    "runs.ask": _plain(lambda value: {"body": 1, "wait": 0, "start": _start(value)}, run_id="WORD", name="add"),
    "runs.signal": _on_run(program.proof_typed_waiting, lambda value: {"payload": value}, name="typed"),
    "runs.start": _plain(_start),
    "schedules.set": _plain(lambda value: {**_start(value), "every": 3600}, name="WORD"),
    "tasks.complete": _on_task,
}
"""The operations that hold a value against a schema, without a fork: a server with the code takes its types there."""


def body_of(ready: Ready, value: bytes) -> bytes:
    """The body of a request with this value."""
    return msgspec.json.encode(ready.wrap(msgspec.Raw(value)))
