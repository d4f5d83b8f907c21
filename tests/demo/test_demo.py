"""`outlive demo` as a user runs it: real workers, a real kill, the right ledger, nothing left behind."""

import io
import os
import re
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from outlive import __version__
from outlive.cli import COMMANDS, main
from outlive.demo.screen import Screen
from outlive.demo.story import recovery_of

OUTLIVE = [sys.executable, "-m", "outlive.cli"]
PATIENCE_SECONDS = 60.0


@pytest.mark.timeout(120)
def test_the_demo_proves_that_nothing_is_lost(tmp_path: Path) -> None:
    """A worker is killed in the middle of a charge, another one goes on, and every line of the ledger is right."""
    done = subprocess.run([*OUTLIVE, "demo", "--orders", "12", "--dir", str(tmp_path)], capture_output=True, text=True)

    assert 0 == done.returncode, done.stdout + done.stderr
    assert re.search(r"orders finished with the right receipt +12 +12 +ok", done.stdout)
    assert re.search(r"orders charged exactly once +12 +12 +ok", done.stdout)
    assert re.search(r"finished steps that began again +0 +0 +ok", done.stdout)
    assert re.search(r"was killed with -9 while it charged order-\d+", done.stdout)
    assert re.search(r"went on after \d+\.\d\d s", done.stdout)
    assert "Nothing was lost and nothing was done twice." in done.stdout
    assert "outlive demo --stay" in done.stdout
    assert_gone(done.stdout)


def test_the_sentence_about_recovery_counts_only_what_is_more_than_one() -> None:
    """An interrupted charge that is alone is not called the last of 1; of several the slowest counts too."""
    assert "Recovery: the interrupted charge went on after 0.05 s." == recovery_of([0.05])
    several = "Recovery: the first interrupted charge went on after 0.03 s, the last of 2 after 0.05 s."
    assert several == recovery_of([0.05, 0.03])
    assert "None of the interrupted charges was taken up again." == recovery_of([])


@pytest.mark.timeout(120)
def test_ctrl_c_leaves_no_worker_behind(tmp_path: Path) -> None:
    """Interrupted in the middle, the demo stops its workers, says where its files are and exits as interrupted."""
    demo = subprocess.Popen([*OUTLIVE, "demo", "--dir", str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert demo.stdout is not None
    output = [demo.stdout.readline(), demo.stdout.readline()]
    try:
        demo.send_signal(signal.SIGINT)
        rest, _ = demo.communicate(timeout=PATIENCE_SECONDS)
    finally:
        demo.kill()

    assert 130 == demo.returncode
    assert str(tmp_path) in rest
    assert_gone(output[1])


@pytest.mark.timeout(120)
def test_workers_die_with_the_demo(tmp_path: Path) -> None:
    """A demo that is killed itself takes its workers with it."""
    demo = subprocess.Popen([*OUTLIVE, "demo", "--dir", str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert demo.stdout is not None
    demo.stdout.readline()
    output = demo.stdout.readline()
    demo.kill()
    demo.communicate()

    assert_gone(output)


def test_help_lists_the_commands_without_importing_them() -> None:
    """`outlive --help` is fast because it reads a table."""
    code = f"import sys; from outlive.cli import main; main({['--help']!r}, standalone_mode=False); "
    code += "assert not [m for m in sys.modules if m.startswith(('outlive.demo', 'outlive.cli.'))]"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert 0 == done.returncode, done.stderr
    assert all(name in done.stdout for name in COMMANDS)


def test_an_unknown_command_is_refused() -> None:
    """A misspelt command gets an error that says so."""
    output = CliRunner().invoke(main, ["dmeo"])

    assert 2 == output.exit_code
    assert "No such command" in output.output


def test_version() -> None:
    """`outlive --version` is the version of the package."""
    assert f"outlive {__version__}\n" == CliRunner().invoke(main, ["--version"]).output


def test_a_terminal_sees_bars_that_refresh() -> None:
    """On a terminal the bars are drawn over, and what is said stays above them."""
    out = Terminal()
    screen = Screen(out)

    screen.show([("finished", 1, 2)], ["worker A"])
    screen.say("kill -9")
    screen.show([("finished", 2, 2)], ["worker A"])

    assert 2 == out.getvalue().count("\x1b[2F\x1b[J")
    assert out.getvalue().index("kill -9") < out.getvalue().index("2 of 2")


def test_a_log_gets_a_line_per_change() -> None:
    """Where nothing can be drawn over, only what changed is written."""
    out = io.StringIO()
    screen = Screen(out)

    for done in (0, 0, 1, 2):
        screen.show([("finished", done, 2)], [])

    assert "  finished 0\n  finished 1\n  finished 2\n" == out.getvalue()


def test_quiet_says_nothing() -> None:
    """The ledger is all that a quiet demo prints."""
    out = io.StringIO()
    screen = Screen(out, is_quiet=True)

    screen.say("kill -9")
    screen.show([("finished", 1, 2)], [])

    assert not out.getvalue()


class Terminal(io.StringIO):
    """A terminal that remembers what was written to it."""

    def isatty(self) -> bool:
        """Say yes."""
        return True


def assert_gone(output: str) -> None:
    """The workers that the demo named do not run any more."""
    pids = [int(pid) for pid in re.findall(r"\(pid (\d+)\)", output)]
    assert pids, output
    for pid in pids:
        wait_for_end(pid)


def wait_for_end(pid: int) -> None:
    """Wait until a process that is not our child is gone; the test's timeout is the limit."""
    try:
        watch = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    with os.fdopen(watch) as file:
        select.select([file], [], [])
