"""A worker of a fleet whose steps ask before they return: `CONTROL=port python -m tests.fleet.program URL NAME ...`.

Every step says on a connection of its own that it was begun, by whom, in which attempt and epoch, and then waits for
the answer. So a test knows exactly what was executed, and where each worker is when it dies.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import sys
from typing import Any

import outlive
from outlive._kernel.define.registry import Registry
from outlive._kernel.runtime.session import sessions
from outlive.testing.child_process import log_to_stderr, say, until_asked_to_stop
from outlive.types import WorkerOptions, Workflow

CONTROL = "FLEET_CONTROL"
"""The port at which a test hears of steps."""
WORKER = "FLEET_WORKER"
"""The name of this worker, for its steps."""
DIE = b"die\n"


def begun(step: str) -> bytes:
    """What a step tells the test."""
    me = outlive.current_step()
    expected = {
        "worker": os.environ[WORKER],
        "pid": os.getpid(),
        "run": me.run_id,
        "step": step,
        "attempt": me.attempt,
        "epoch": me.epoch,
        "key": me.idempotency_key,
    }
    return json.dumps(expected).encode() + b"\n"


@outlive.step
async def fleet_visit(step: str) -> str:
    """A step of the worker itself."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(os.environ[CONTROL]))
    try:
        writer.write(begun(step))
        await reader.readline()
    finally:
        writer.close()
    return step


@outlive.step(process=True, retry=outlive.Retry(attempts=3, first=0, jitter=0))
def fleet_visit_in_process(step: str) -> str:
    """A step with a process of its own, which dies if the test says so."""
    with socket.create_connection(("127.0.0.1", int(os.environ[CONTROL]))) as connection:
        connection.sendall(begun(step))
        if connection.makefile("rb").readline() == DIE:
            os._exit(1)
    return step


@outlive.workflow
async def fleet_sequence() -> list[str]:
    return [await fleet_visit("first"), await fleet_visit("second"), await fleet_visit("third")]


@outlive.workflow
async def fleet_branches() -> list[str]:
    branches = await asyncio.gather(*[fleet_visit(branch) for branch in ("left", "middle", "right")])
    return [*branches, await fleet_visit("total")]


@outlive.workflow
async def fleet_inner() -> list[str]:
    return [await fleet_visit("inner first"), await fleet_visit("inner second")]


@outlive.workflow
async def fleet_outer() -> list[str]:
    return [await fleet_visit("before"), *await fleet_inner(), await fleet_visit("after")]


@outlive.workflow
async def fleet_with_a_process() -> list[str]:
    return [await fleet_visit("first"), await fleet_visit_in_process("second"), await fleet_visit("third")]


@outlive.workflow
async def fleet_elsewhere() -> str:
    return await fleet_visit("work")


@outlive.workflow
async def fleet_with_work_elsewhere() -> list[str]:
    first = await fleet_visit("first")
    other = await outlive.start(fleet_elsewhere, detached=True, id="work")
    return [first, await other.result(), await fleet_visit("third")]


WORKFLOWS: dict[str, Workflow[..., Any]] = {
    workflow.spec.name: workflow
    for workflow in (
        fleet_sequence,
        fleet_branches,
        fleet_inner,
        fleet_outer,
        fleet_with_a_process,
        fleet_elsewhere,
        fleet_with_work_elsewhere,
    )
}


def registry_of(names: list[str]) -> Registry:
    """The workflows that this worker has."""
    registry = Registry()
    for step in (fleet_visit, fleet_visit_in_process):
        registry.add_step(step.spec)  # Flows find it by its name.
    for name in names or WORKFLOWS:
        registry.add_workflow(WORKFLOWS[name].spec)
    return registry


async def main(arguments: argparse.Namespace) -> None:
    """Be a worker, begin the runs that the arguments name, and stop when it is asked to."""
    if arguments.alone:
        # No other process can see from outside whether the process lives, as if it were on a machine of its own.
        vars(sessions)["this_process"] = str
    async with outlive.Engine(
        arguments.url,
        worker=WorkerOptions(
            name=arguments.name, lease_seconds=arguments.lease_seconds, queues=arguments.queues, grace_seconds=0
        ),
        _registry=registry_of(arguments.only),
        poll_seconds=0.05,
    ) as engine:
        for begin in arguments.begin:
            name, _, run_id = begin.partition(":")
            await engine.start(WORKFLOWS[name], id=run_id)
        say("ready")
        await until_asked_to_stop()


def parse(words: list[str]) -> argparse.Namespace:
    """What a test wants."""
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("name")
    parser.add_argument("--lease-seconds", type=float, default=3600)
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--only", nargs="*", default=[], metavar="WORKFLOW")
    parser.add_argument("--queues", nargs="*", metavar="QUEUE")
    parser.add_argument("--begin", nargs="*", default=[], metavar="WORKFLOW:ID")
    return parser.parse_args(words)


if __name__ == "__main__":
    log_to_stderr()
    asyncio.run(main(parse(sys.argv[1:])))
