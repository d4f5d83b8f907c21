"""Steps in processes of their own: their results, their failures, and above all their ends."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import outlive
from outlive._kernel.runtime.tree import emitter
from outlive.errors import DefinitionError
from outlive.events import AttemptFailed, StepProgressed
from outlive.limits import Limits
from tests.engine.inside import fence
from tests.engine.support import Place, events_of, gone, in_time, lives, note, until, written
from tests.interrupts import ignored_interrupts
from tests.step_kinds.process_steps import (
    Picture,
    asking_process,
    counting_on_in_process,
    double_picture,
    doubling_picture,
    dying_in_process,
    dying_in_process_once,
    dying_with_a_fork,
    giving_from_process,
    interrupting_process,
    looking_sharply,
    many_processes,
    publishing_process,
    running_on_in_process,
    talking_nonsense,
)

ROOT = Path(__file__).parents[2]


@pytest.fixture
def place() -> Place:
    """In memory only: no process knows where the runs are kept."""
    return Place(None)


async def test_values_cross_as_they_are_stored(engine: outlive.Engine) -> None:
    """Arguments and results have their types on both sides."""
    run = await engine.start(doubling_picture, Picture(b"\x00\xff", 1))

    assert Picture(b"\x00\xff\x00\xff", 2) == await in_time(run.result())


async def test_step_in_a_process_can_publish_and_emit_and_knows_the_time(
    engine: outlive.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step in a process publishes values and emits items in their order through its small buffer."""
    monkeypatch.setattr(emitter, "ITEMS_MAX", 20)
    run = await engine.start(publishing_process)

    assert await in_time(run.result())
    assert [item["number"] async for item in run.stream("numbers")] == list(range(200))
    assert await run.published() == {"stage": "packing", "rows": 7}


async def test_step_in_a_process_knows_itself(engine: outlive.Engine) -> None:
    """A step in a process knows its run, name, attempt, headers and key, and the next step gets the same process."""
    run = await engine.start(asking_process, id="run-1", headers={"tenant": "a"})
    first, second = await in_time(run.result())

    assert {"tenant": "a"} == first["headers"]
    assert os.getpid() != first["pid"] == second["pid"]
    assert {"run": "run-1", "name": "tell_process", "attempt": 1, "epoch": 1}.items() <= first.items()
    assert str(first["key"]).startswith("run-1:tell_process:")
    assert (None, False) == (first["progress"], first["cancelled"])
    assert 1 == engine.counters.processes_begun


async def test_exceptions_come_back_as_from_anywhere(engine: outlive.Engine) -> None:
    """With their class, attributes and cause; and a policy judges by class whether another attempt is worth it."""
    run = await engine.start(looking_sharply)

    assert ["unsharp at left left ValueError('blurred')", "KeyError('not worth it')"] == await in_time(run.result())
    (failed,) = await events_of(run, AttemptFailed)
    assert "unsharp at first" == failed.failure.message
    assert "look_sharply_again" in failed.failure.traceback


@pytest.mark.parametrize("how", [signal.SIGSEGV, signal.SIGKILL])
async def test_process_that_dies_fails_its_attempt_only(engine: outlive.Engine, tmp_path: Path, how: int) -> None:
    """The next attempt has a new process; the engine and other steps go on. [SF-X9 FE-R14]"""
    other = await engine.start(asking_process)
    run = await engine.start(dying_in_process_once, str(tmp_path / "began"), int(how))

    assert "second" == await in_time(run.result())
    (failed,) = await events_of(run, AttemptFailed)
    assert f"was killed by {signal.Signals(how).name}" in failed.failure.message
    assert 2 == len(await in_time(other.result()))


async def test_dead_process_raises_in_the_workflow(engine: outlive.Engine) -> None:
    """The workflow gets an error that says by which signal the process of its step was killed."""
    run = await engine.start(dying_in_process, int(signal.SIGKILL))

    assert "dies_in_process was killed by SIGKILL (out of memory, perhaps)" == await in_time(run.result())


async def test_process_that_dies_is_seen_to_be_dead_though_its_fork_lives(
    engine: outlive.Engine, tmp_path: Path
) -> None:
    """The pipe does not end; the fork does, as everything that the process has started."""
    run = await engine.start(dying_with_a_fork, str(tmp_path / "fork"))
    forks = await written(tmp_path / "fork")

    assert "dies_with_a_fork_in_process was killed by SIGKILL (out of memory, perhaps)" == await in_time(run.result())
    await gone(forks)


async def test_process_that_talks_nonsense_is_killed(engine: outlive.Engine) -> None:
    """A process whose answer cannot be read is not asked again."""
    run = await engine.start(talking_nonsense)

    assert "was killed by SIGKILL" in await in_time(run.result())


async def test_late_process_is_killed_with_what_it_started(engine: outlive.Engine, tmp_path: Path) -> None:
    """No code of it runs on."""
    run = await engine.start(running_on_in_process, str(tmp_path / "pids"), 5.0)
    processes = await written(tmp_path / "pids")

    assert "StepTimeoutError" == await in_time(run.result())
    await gone(processes)


async def test_cancelled_process_is_killed(engine: outlive.Engine, tmp_path: Path) -> None:
    """At once, whatever it does."""
    run = await engine.start(running_on_in_process, str(tmp_path / "pids"), 600)
    processes = await written(tmp_path / "pids")
    await run.cancel()

    with pytest.raises(outlive.errors.RunCancelledError):
        await in_time(run.result())
    await gone(processes)


async def test_processes_end_with_their_engine(place: Place, tmp_path: Path) -> None:
    """Busy and idle ones."""
    async with place.engine(limits=Limits(processes_max=2)) as engine:
        idle = await in_time((await engine.start(asking_process)).result())
        await engine.start(running_on_in_process, str(tmp_path / "pids"), 600)
        processes = await written(tmp_path / "pids")
        assert all(map(lives, processes))

    await gone([*processes, int(str(idle[0]["pid"]))])


async def test_processes_end_when_the_lease_is_lost(engine: outlive.Engine, tmp_path: Path) -> None:
    """Another worker may do the same work by now."""
    await engine.start(running_on_in_process, str(tmp_path / "pids"), 600)
    processes = await written(tmp_path / "pids")
    (tmp_path / "pids").unlink()
    fence(engine)

    await gone(processes)
    # The new session begins the step again.
    assert await written(tmp_path / "pids")


async def test_progress_comes_back_while_the_step_runs(engine: outlive.Engine, tmp_path: Path) -> None:
    """It is in the journal before the step has ended, and the next attempt finds it."""
    run = await engine.start(counting_on_in_process, str(tmp_path / "go"))

    async def is_saved() -> bool:
        return bool(await events_of(run, StepProgressed))

    await until(is_saved)
    (tmp_path / "go").touch()
    assert {"rows": 7} == await in_time(run.result())


async def test_result_that_cannot_be_stored_is_an_error_of_the_step(engine: outlive.Engine) -> None:
    """A result of a process that cannot be stored is an error of its step, and the process takes the next job."""
    assert "UnserialisableError" == await in_time((await engine.start(giving_from_process, "an object")).result())
    assert "text" == await in_time((await engine.start(giving_from_process, "text")).result())
    assert 1 == engine.counters.processes_begun


async def test_no_more_processes_than_the_limit(place: Place) -> None:
    """The others wait for their turn."""
    async with place.engine(limits=Limits(processes_max=1)) as engine:
        assert 1 == await in_time((await engine.start(many_processes, 5)).result())


async def test_idle_process_that_died_is_replaced(engine: outlive.Engine) -> None:
    """No attempt is spent on it."""
    first = (await in_time((await engine.start(asking_process)).result()))[0]["pid"]
    os.kill(int(str(first)), signal.SIGKILL)
    await gone([int(str(first))])

    run = await engine.start(asking_process)
    assert first != (await in_time(run.result()))[0]["pid"]
    assert [] == await events_of(run, AttemptFailed)


def test_async_function_is_refused() -> None:
    """When it is defined, in words."""
    with pytest.raises(DefinitionError, match="process=True is for plain functions"):
        outlive.step(process=True)(note.fn)


def test_outside_a_run_it_is_the_plain_function() -> None:
    """In this process."""
    assert Picture(b"aa", 2) == double_picture.fn(Picture(b"a", 1))


# -- Scripts -----------------------------------------------------------------------------------------------------------

SCRIPT = """
import asyncio, os, sys, time
from pathlib import Path
import outlive

class Oops(Exception):
    pass

@outlive.step(process=True, retry=outlive.Retry(attempts=2, first=0, on=(Oops,)))
def work(file: str) -> str:
    if outlive.current_step().attempt == 1:
        raise Oops("once")
    Path(file + ".new").write_text(f"{os.getpid()} {os.getppid()}")
    Path(file + ".new").rename(file)
    print("in the step")
    while file.endswith("long"):
        time.sleep(60)
    return "done"

@outlive.workflow
async def working(file: str) -> str:
    return await work(file)

async def main() -> None:
    async with outlive.Engine("memory:", worker=outlive.types.WorkerOptions(grace_seconds=0)) as engine:
        run = await engine.start(working, sys.argv[1])
        print(await run.result())
"""
GUARDED = f'{SCRIPT}\nif __name__ == "__main__":\n    asyncio.run(main())\n'


Play = Callable[[str, str], subprocess.Popen[str]]


@pytest.fixture
def play(tmp_path: Path) -> Iterator[Play]:
    """Begins scripts of a user; neither they nor what they start outlives the test."""
    begun: list[subprocess.Popen[str]] = []

    def begin(script: str, file: str) -> subprocess.Popen[str]:
        (tmp_path / "script.py").write_text(script)
        process = subprocess.Popen(
            [sys.executable, "script.py", str(tmp_path / file)],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        begun.append(process)
        return process

    yield begin
    for process in begun:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


async def ended(process: subprocess.Popen[str]) -> tuple[str, str]:
    """What a script has printed, when it has ended."""
    return await asyncio.to_thread(process.communicate, timeout=20)


async def test_steps_of_a_script_run_in_processes(play: Play, tmp_path: Path) -> None:
    """The new process imports the script under another name; classes have the name that they have in the script."""
    script = play(GUARDED, "short")

    assert ("in the step\ndone\n", "") == await ended(script)
    assert 0 == script.returncode


async def test_processes_do_not_outlive_a_parent_that_is_killed(play: Play, tmp_path: Path) -> None:
    """kill -9 of the parent leaves no process behind."""
    script = play(GUARDED, "long")
    processes = await written(tmp_path / "long")
    script.kill()

    await ended(script)
    await gone(processes)


@pytest.mark.parametrize("when", ["while it works", "while it begins"])
async def test_ctrl_c_is_the_affair_of_the_script(play: Play, tmp_path: Path, when: str) -> None:
    """The processes of its steps end and say nothing, not even one that has not begun yet."""
    slow = 'if __name__ != "__main__":\n    Path(sys.argv[1]).write_text(str(os.getpid()))\n    time.sleep(0.2)\n'
    script = play(GUARDED if when == "while it works" else f"{GUARDED}\n{slow}", "long")
    processes = await written(tmp_path / "long")
    os.killpg(script.pid, signal.SIGINT)

    _, output = await ended(script)
    await gone(processes)
    assert 1 == output.count("KeyboardInterrupt\n"), output
    assert "time.sleep" not in output


async def test_process_of_a_step_can_be_interrupted_though_its_parent_ignores_that() -> None:
    """A worker in the background of a shell inherits SIGINT as ignored; its steps count on KeyboardInterrupt."""
    with ignored_interrupts():
        async with Place(path=None).engine() as engine:
            assert "interrupted" == await in_time((await engine.start(interrupting_process)).result())


async def test_script_without_a_guard_gets_an_error_with_what_it_lacks(play: Play, tmp_path: Path) -> None:
    """It would start another engine in each process, and wait for itself."""
    script = play(f"{SCRIPT}\nasyncio.run(main())\n", "short")

    _, output = await ended(script)
    assert 'if __name__ == "__main__":' in output
    assert "ProcessDiedError" in output
    assert 1 == script.returncode


def test_process_of_a_step_ends_with_the_interpreter(tmp_path: Path) -> None:
    """The process of a step, with the processes that it started, ends with its program even if the engine was not
    stopped.

    All of them have the standard output of the program, which ends when the last of them does."""
    program = Path(__file__).with_name("exiting.py")
    ended = subprocess.run(
        [sys.executable, str(program), str(tmp_path / "begun")],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        timeout=25,
        check=False,
    )

    assert ended.returncode == 0
