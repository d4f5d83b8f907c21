"""Flows of the store in worker processes that are killed."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest

import outlive
from tests.cli.conftest import Command
from tests.engine.support import in_time, waits

PINNED = """\
name: cli-pinned
steps:
  ready: { use: wait_for_signal, with: { name: go } }
  say: { use: noop, after: [ready], with: { text: ONE } }
output: "${{ steps.say.text }}"
"""


@pytest.mark.slow
async def test_killed_worker_and_a_new_revision(command: Callable[..., Command], url: str) -> None:
    """A worker without any program runs stored flows. A worker that takes a run over after a kill -9 has never seen a
    file, and goes on with the document that the run was started with. [FB-R1]"""
    async with outlive.Engine(url, worker=False) as people:
        await people.flows.apply(PINNED)
        lacking = await people.flows.apply("name: cli-lacking\nsteps: { one: { use: cli.nowhere } }\n")
        first = command("worker", "--store", url)
        assert f"; it lacks cli.nowhere for flow cli-lacking@{lacking.hash}" in first.ready()
        run = await people.flows.start("cli-pinned", id="pinned-1")
        await in_time(waits(run))
        first.signal(signal.SIGKILL)
        first.ends()
        await people.flows.apply(PINNED.replace("ONE", "TWO"))

        command("worker", "--store", url).ready()
        await run.signal("go")
        assert "ONE" == await in_time(run.result())
        new = await people.flows.start("cli-pinned")
        await new.signal("go")
        assert "TWO" == await in_time(new.result())
