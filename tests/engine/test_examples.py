"""The examples run as they stand."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import outlive
from outlive._journal.event import RunClaimed, StepSucceeded, TimerFired
from outlive.errors import RunNotFoundError, StoreError
from tests.engine.support import events_of, until

ROOT = Path(__file__).parents[2]


def begin(name: str, folder: Path) -> subprocess.Popen[str]:
    """Start an example in a folder of its own."""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, str(ROOT / "examples" / name)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environment, cwd=folder, stdout=pipe, stderr=pipe, text=True)


def finish(process: subprocess.Popen[str]) -> list[str]:
    """What an example has printed when it has ended well."""
    out, err = process.communicate(timeout=30)
    assert (0, "") == (process.returncode, err)
    return out.splitlines()


async def test_hello(tmp_path: Path) -> None:
    """Hello greets; killed with -9 during its sleep and started again it greets all the same, and sleeps no longer."""
    killed = begin("hello.py", tmp_path)
    async with outlive.Engine(f"sqlite:{tmp_path / 'hello.db'}", worker=False) as engine:
        run = engine.get("hello-1")

        async def is_asleep() -> bool:
            try:
                return bool(await events_of(run, StepSucceeded))
            except (RunNotFoundError, StoreError):
                return False

        await until(is_asleep)
        killed.send_signal(signal.SIGKILL)
        killed.communicate()
        assert -signal.SIGKILL == killed.returncode

        assert ["Hello, world!"] == finish(begin("hello.py", tmp_path))
        kinds = [type(event) for event in await run.history()]
        assert 1 == kinds.count(StepSucceeded) == kinds.count(TimerFired)
        assert RunClaimed in kinds
    assert ["Hello, world!"] == finish(begin("hello.py", tmp_path))


def test_steps(tmp_path: Path) -> None:
    """Steps are retried with what they saved, and run once: the second time there is nothing to do."""
    result = "o-1: 19.99 (not archived: step archive did not end within its timeout of 0.2 s)"
    attempts = [
        "charge o-1: attempt 1, progress None",
        "charge o-1: attempt 2, progress asked the bank",
        "charge o-1: attempt 3, progress asked the bank",
    ]

    assert [*attempts, result] == finish(begin("steps.py", tmp_path))
    assert [result] == finish(begin("steps.py", tmp_path))


def test_checkout(tmp_path: Path) -> None:
    """What was booked is given back, newest first, when the card is refused; asked again, nothing happens twice."""
    receipt = "paid: 1999 for o-1"
    refused = "run checkout-2 failed: __main__.CardRefusedError: no money for o-2"

    told = finish(begin("checkout.py", tmp_path))
    assert [receipt, refused] == [told[3], told[-1]]
    assert {"reserved o-1", "booked a truck for o-1", "booked a slot for o-1"} == set(told[:3])
    assert {"gave back the truck of o-2", "gave back the slot of o-2"} == set(told[-4:-2])
    assert "gave back o-2" == told[-2]
    assert [receipt, refused] == finish(begin("checkout.py", tmp_path))


def test_waiting(tmp_path: Path) -> None:
    """Waits end by signal, approval, race and cancellation; the second time everything is decided."""
    told = [
        "decided by bea",
        "decided by bea",
        "ann, bea says RefundForm(cents=4200), o-1 asked for 0.1 s, o-1 is fine, 300",
        "run run-2 was cancelled: the customer has left",
    ]

    assert [*told[:3], "o-2: everything given back", told[3]] == finish(begin("waiting.py", tmp_path))
    assert told == finish(begin("waiting.py", tmp_path))
