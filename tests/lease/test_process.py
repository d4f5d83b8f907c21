"""The name of a process tells its neighbours that it has died, and never that it has when it lives."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from outlive._kernel.lease import process
from outlive._kernel.lease.process import is_gone, this_process

PROGRAM = "from outlive._kernel.lease.process import this_process; print(this_process(), flush=True); input()"


@pytest.fixture
def other() -> Iterator["subprocess.Popen[str]"]:
    """Another process of this machine."""
    process = subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=-1, stdout=-1, text=True)
    with process:
        yield process
        process.kill()


def name_of(process: "subprocess.Popen[str]") -> str:
    """What it calls itself."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_living_process_is_not_gone(other: "subprocess.Popen[str]") -> None:
    """Nor are we."""
    assert not is_gone(name_of(other))
    assert not is_gone(this_process())


def test_stopped_process_is_not_gone(other: "subprocess.Popen[str]") -> None:
    """It may go on: that is what its lease is for."""
    name = name_of(other)
    other.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, other.pid, os.WSTOPPED | os.WNOWAIT)

    assert not is_gone(name)


def test_killed_process_is_gone_before_its_parent_has_noticed(other: "subprocess.Popen[str]") -> None:
    """Its number is still taken."""
    name = name_of(other)
    other.kill()
    os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)

    assert is_gone(name)


def test_killed_process_is_gone_when_its_number_is_free(other: "subprocess.Popen[str]") -> None:
    """A number that no process has belongs to a process that is gone."""
    name = name_of(other)
    other.kill()
    other.wait()

    assert is_gone(name)


def test_number_that_another_process_has_now_is_not_taken_for_the_old_one() -> None:
    """By the moment of its start."""
    home, began = this_process().rsplit("/", 1)

    assert is_gone(f"{home}/{int(began) + 1}")


@pytest.mark.parametrize(
    "name",
    [
        "",
        "nonsense",
        "a/b/c/d",
        "00000000-0000-0000-0000-000000000000/4026531836/1/1",
        "../../x/1/2",
    ],
)
def test_a_process_elsewhere_is_never_taken_for_gone(name: str) -> None:
    """A process of another machine or boot, or a name that we have not written, is never taken for gone."""
    assert not is_gone(name)


def test_another_namespace_cannot_be_looked_at() -> None:
    """A process of another namespace is never taken for gone, because its number means another process there."""
    boot, namespace, number, began = this_process().split("/")

    assert not is_gone(f"{boot}/{int(namespace) + 1}/{number}/{int(began) + 1}")


@pytest.mark.parametrize("question", ["ask_for_process", "look_at_process"])
def test_a_process_that_the_system_hides_is_never_taken_for_gone(
    question: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that the system does not show is never taken for gone, so its lease decides."""
    name = this_process()

    def refuse(_number: int) -> None:
        raise OSError("no answer")

    monkeypatch.setattr(process, question, refuse)

    assert not is_gone(name)


def test_process_of_another_user_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may not be asked, but it can be seen, and has the right age."""
    name = this_process()

    def refuse(_number: int) -> None:
        raise PermissionError

    monkeypatch.setattr(process, "ask_for_process", refuse)

    assert not is_gone(name)
    assert is_gone(f"{name}0")
