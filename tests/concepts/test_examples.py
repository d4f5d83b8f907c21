"""The examples run as they stand, on every store: in a copy, nothing but the address of the store is another one."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import outlive
from outlive.errors import RunNotFoundError, StoreError
from outlive.events import RunClaimed, StepSucceeded, TimerFired
from tests.engine.inside import journal_of, row_of, store_of
from tests.engine.support import events_of, until

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
_ADDRESS = re.compile(r'Engine\("(sqlite:\w+\.db|memory:)"')


class Stage:
    """A folder with a copy of an example, on a store of its own."""

    def __init__(self, folder: Path, kind: str, url: str) -> None:
        self._folder = folder
        self.kind = kind
        self.url = url

    @property
    def remembers(self) -> bool:
        """Whether the store outlives the process."""
        return self.kind != "memory"

    def begin(self, name: str) -> subprocess.Popen[str]:
        """Start an example."""
        source, count = _ADDRESS.subn(f"Engine({self.url!r}", (EXAMPLES / name).read_text("utf-8"))
        assert count == 1, "an example opens one engine"
        (self._folder / name).write_text(source, "utf-8")
        environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
        command = [sys.executable, "-W", "error", name]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, env=environment, cwd=self._folder, stdout=pipe, stderr=pipe, text=True)

    def play(self, name: str, *, logs: str = "") -> list[str]:
        """What an example prints, which ends well, and whose log begins with `logs`."""
        return finish(self.begin(name), logs=logs)


def finish(process: subprocess.Popen[str], *, logs: str = "") -> list[str]:
    """What an example has printed when it has ended well; its log, if it has one, begins with `logs`."""
    out, err = process.communicate(timeout=30)
    assert (0, logs) == (process.returncode, err[: len(logs)] if logs else err)
    return out.splitlines()


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Stage:
    """Where an example plays."""
    if request.param == "postgres":
        return Stage(tmp_path, request.param, request.getfixturevalue("postgres_url"))
    return Stage(tmp_path, request.param, "memory:" if request.param == "memory" else f"sqlite:{tmp_path / 'play.db'}")


async def test_hello(stage: Stage) -> None:
    """Hello greets; killed with -9 during its sleep and started again it greets all the same, and sleeps no longer.
    [FE-S1]
    """
    if not stage.remembers:
        assert ["Hello, world!"] == stage.play("hello.py")
        return
    killed = stage.begin("hello.py")
    async with outlive.Engine(stage.url, worker=False) as engine:
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
        if stage.kind == "postgres":
            # A dead process is known by its lease, which takes its time.
            await store_of(engine).end_session((await row_of(run)).owner)

        assert ["Hello, world!"] == stage.play("hello.py")
        kinds = [type(event) for event in await journal_of(run)]
        assert 1 == kinds.count(StepSucceeded) == kinds.count(TimerFired)
        assert RunClaimed in kinds
    assert ["Hello, world!"] == stage.play("hello.py")


def test_steps(stage: Stage) -> None:
    """Steps are retried with what they saved, and run once: the second time there is nothing to do."""
    result = "o-1: 19.99 (not archived: step archive did not end within its timeout of 0.2 s)"
    attempts = [
        "charge o-1: attempt 1, progress None",
        "charge o-1: attempt 2, progress asked the bank",
        "charge o-1: attempt 3, progress asked the bank",
    ]

    assert [*attempts, result] == stage.play("steps.py")
    if stage.remembers:
        assert [result] == stage.play("steps.py")


def test_kinds(stage: Stage) -> None:
    """Work in a process, a message at most once, and money exactly once."""
    results = ["32 bytes, 500 cents", "32 bytes, 1000 cents"]
    messages = ["to ann: thank you, you have 500", "to ann: thank you, you have 1000"]

    assert [messages[0], results[0], messages[1], results[1]] == stage.play("kinds.py")
    if stage.remembers:
        assert results == stage.play("kinds.py")


def test_many(stage: Stage) -> None:
    """A map and a batch; the second time all items are there."""
    expected = ["2 of 3 pictures, 9 bytes", "[0, 5, 10, 15, 20, 25, 30, 35, 40, 45]"]

    assert expected == stage.play("many.py")
    if stage.remembers:
        assert expected == stage.play("many.py")


def test_checkout(stage: Stage) -> None:
    """The checkout gives back its bookings, newest first, when the card is refused, and does nothing twice when it is
    run again."""
    receipt = "paid: 1999 for o-1"
    refused = "run checkout-2 failed: __main__.CardRefusedError: no money for o-2"

    output = stage.play("checkout.py", logs="run checkout-2 failed:\nTraceback")
    assert [receipt, refused] == [output[3], output[-1]]
    assert {"reserved o-1", "booked a truck for o-1", "booked a slot for o-1"} == set(output[:3])
    assert {"gave back the truck of o-2", "gave back the slot of o-2"} == set(output[-4:-2])
    assert "gave back o-2" == output[-2]
    if stage.remembers:
        assert [receipt, refused] == stage.play("checkout.py")


def test_machine(stage: Stage) -> None:
    """Three orders as a machine: one is shipped, one lost, one given back; asked again, nothing happens twice."""
    expected = ["order-1: S.DONE labelled, wrapped", "order-2: S.LOST", "order-3: no truck for a piano"]

    first = [
        "reserved lamp",
        expected[0],
        "reserved moon",
        expected[1],
        "reserved piano",
        "gave back piano",
        expected[2],
    ]
    assert first == stage.play("machine.py", logs="run order-3 failed:\nTraceback")
    if stage.remembers:
        assert expected == stage.play("machine.py")


def test_waiting(stage: Stage) -> None:
    """Waits end by signal, ask, approval, race and cancellation; the second time everything is decided."""
    expected = [
        "decided by bea",
        "decided by bea",
        "ann, bea says RefundForm(cents=4200), o-1 asked for 0.1 s, o-1 is fine, 300",
        "3 in the cart",
        "100 are too many for u-1",
        "10 in the cart",
        "run run-2 was cancelled: the customer has left",
    ]

    assert [*expected[:-1], "o-2: everything given back", expected[-1]] == stage.play("waiting.py")
    if stage.remembers:
        assert expected == stage.play("waiting.py")


def test_orders(stage: Stage) -> None:
    """Runs that know themselves and talk, and an operator who finds them and brings them back."""
    printed = [
        "run order-7 failed: ConnectionError: the bank does not answer",
        "['order-7'] 0",
        "order-7 of tenant a: 8400 cents, to be looked at",
        "['lamp', 'is', 'paid']",
        "order-7b of tenant a: 8400 cents",
        "it waits for signal 'paid' 1",
        "order-7 goes to ann",
        "order-7 of tenant a: 8400 cents, to be looked at",
        "order-8 of tenant b: 8400 cents, to be looked at []",
    ]

    assert printed == stage.play("orders.py", logs="run order-7 failed:\nTraceback")


def test_tests(tmp_path: Path) -> None:
    """The tests of the examples pass, with yesterday's histories."""
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += ["-p", "pytest_outlive", "-p", "pytest_asyncio.plugin", "-o", "asyncio_mode=auto"]
    output = subprocess.run(
        command, env=environment, cwd=tmp_path / "examples", capture_output=True, text=True, check=False, timeout=60
    )
    assert "3 passed" in output.stdout, output.stdout + output.stderr
