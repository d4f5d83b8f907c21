"""What runs now, over HTTP, through a connection, and on the command line."""

from __future__ import annotations

import asyncio
import re

from click.testing import CliRunner

import outlive
from outlive.cli import main
from outlive.types import WorkerOptions
from tests.cli.serving import served
from tests.engine.support import in_time, stage


@outlive.step
async def pay_and_wait(order: int, card: str) -> None:
    await stage.gate("pay_and_wait").pass_through()


@outlive.workflow
async def order_slowly(order: int) -> None:
    await pay_and_wait(order, "4711")


async def test_every_door_names_the_step_that_runs() -> None:
    """The step that runs, and its worker by its name, are one value everywhere, without what is redacted."""
    stage.clear()
    async with outlive.Engine("memory:", redact=["card"], worker=WorkerOptions(name="w1")) as engine:
        run = await engine.start(order_slowly, 7, id="o-1")
        await stage.gate("pay_and_wait").reached()
        async with served(engine) as url, outlive.connect(url) as remote:
            (step,) = await remote.get("o-1").steps(arguments=True)
            assert step == (await run.steps(arguments=True))[0]
            assert (step.call, step.worker) == ("pay_and_wait", "w1")
            assert step.arguments == {"order": 7, "card": "[redacted]"}
            assert (await remote.steps("o-1"))[0].arguments is None
            row = await engine.info("o-1")
            assert row.worker == "w1"
            assert (await remote.info("o-1"), await engine.list()) == (row, [row])
            why = await remote.get("o-1").why()
            assert why.startswith('it is in step pay_and_wait(order=7, card="[redacted]"), for ')
            shown = await asyncio.to_thread(CliRunner().invoke, main, ["runs", "steps", "o-1", "--server", url])
            assert shown.stdout.startswith('pay_and_wait(order=7, card="[redacted]"), for ')
            assert '\n  card = "[redacted]"\n' in shown.stdout
            one = await asyncio.to_thread(CliRunner().invoke, main, ["runs", "show", "o-1", "--server", url])
            assert 'it is in step pay_and_wait(order=7, card="[redacted]"), for ' in one.stdout
            assert re.search(r"^worker +w1$", one.stdout, re.MULTILINE)
        stage.gate("pay_and_wait").open()
        await in_time(run.result())
        assert await engine.steps("o-1") == []
