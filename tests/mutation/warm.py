"""A plugin of pytest that tries mutants in forks of one process, which has imported the package and the tests.

To start Python and pytest costs more than the few tests that notice most mutants. Here a mutant costs a fork: the child
gives the changed code to the functions that have the old one, and pytest goes on in it with the tests of this mutant. A
test that notices one is tried in a fork without a mutant, too, and counts only if it passes there.

What is changed outside of functions, and what only the programs run that tests start, cannot be noticed in this way:
what survives here is tried in a process of its own (`trial.py`).

The plugin reads the trials, one JSON object in each line, from the file in `OUTLIVE_MUTATION_TRIALS`, and adds what
became of each mutant to the file in `OUTLIVE_MUTATION_FATES`.
"""

from __future__ import annotations

import gc
import importlib
import inspect
import json
import os
import select
import signal
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import CodeType, FunctionType
from typing import NamedTuple

import pytest

import outlive
from tests.mutation.trial import SLOWNESS, Fate

PACKAGE = Path(outlive.__file__).parent
START_SECONDS = 15.0
"""What they may take besides: what tests share, such as a server, is made in every fork."""


class Key(NamedTuple):
    """Where a function is defined."""

    file: str
    name: str
    line: int


class Warm:
    """Tries one mutant after the other."""

    def __init__(self, trials: Path, fates: Path) -> None:
        self._trials = [json.loads(line) for line in trials.read_text("utf-8").splitlines()]
        self._fates = fates
        self._is_sound: dict[str, bool] = {}
        """Whether a test passes in a fork without a mutant."""
        self._failed: int | None = None
        """In a child, where it writes the name of the test that failed."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Try all of them, instead of running the tests."""
        items = {item.nodeid: item for item in session.items}
        for trial in self._trials:
            importlib.import_module(trial["module"])
        functions = functions_of_the_package()
        for trial in self._trials:
            key, code = changed_function(PACKAGE / trial["file"], trial["text"])
            changed = [it for it in functions[key] if len(it.__code__.co_freevars) == len(code.co_freevars)]
            fate = Fate.UNTRIED
            if changed:
                fate = self._try([items[test] for test in trial["tests"]], trial["seconds"], changed, code)
            with self._fates.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"mutant": trial["mutant"], "fate": fate.value}) + "\n")
        return True

    def _try(self, items: list[pytest.Item], seconds: float, functions: list[FunctionType], code: CodeType) -> Fate:
        fate, test = self._fork(items, seconds, functions, code)
        if fate is Fate.KILLED and test not in self._is_sound:
            alone = [item for item in items if item.nodeid == test]
            self._is_sound[test] = self._fork(alone, seconds, [], code)[0] is Fate.SURVIVED
        return Fate.UNTRIED if fate is Fate.KILLED and not self._is_sound[test] else fate

    def _fork(
        self, items: list[pytest.Item], seconds: float, functions: list[FunctionType], code: CodeType
    ) -> tuple[Fate, str]:
        """What becomes of these tests where these functions have this code, and the first that fails."""
        reading, writing = os.pipe()
        if not (child := os.fork()):
            self._failed = writing
            try:
                become_silent()
                for function in functions:
                    function.__code__ = code
                run(items)
            except BaseException:
                os._exit(1)
            os._exit(0)
        os.close(writing)
        did_end = ends_within(child, seconds * SLOWNESS + START_SECONDS)
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        with os.fdopen(reading) as file:
            test = file.read()
        if not did_end:
            return Fate.TIMED_OUT, ""
        return Fate.KILLED if test else Fate.UNTRIED if status else Fate.SURVIVED, test

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A child says which test failed, once."""
        if report.failed and self._failed is not None:
            os.write(self._failed, report.nodeid.encode())
            self._failed = None


def become_silent() -> None:
    """Leave the group of processes that a terminal or the caller ends, and say nothing."""
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nothing, number)


def run(items: list[pytest.Item]) -> None:
    """Run tests until one fails, and end what they share."""
    session = items[0].session
    for item, following in zip(items, [*items[1:], None], strict=True):
        item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            break
    session.ihook.pytest_sessionfinish(session=session, exitstatus=0)


def ends_within(process: int, seconds: float) -> bool:
    """Whether a child ends in time."""
    descriptor = os.pidfd_open(process)
    try:
        return bool(select.select([descriptor], [], [], seconds)[0])
    finally:
        os.close(descriptor)


def functions_of_the_package() -> dict[Key, list[FunctionType]]:
    """The functions that are there now, by where they are defined."""
    found: dict[Key, list[FunctionType]] = defaultdict(list)
    gc.unfreeze()  # What is frozen is not listed.
    for it in gc.get_objects():
        if isinstance(it, FunctionType) and it.__code__.co_filename.startswith(str(PACKAGE)):
            found[key_of(it.__code__)].append(it)
    gc.freeze()
    return found


def key_of(code: CodeType) -> Key:
    """Where a code is defined."""
    return Key(code.co_filename, code.co_qualname, code.co_firstlineno)


def changed_function(file: Path, text: str) -> tuple[Key, CodeType]:
    """The function that stands in no other one and means another thing in this text than in the file, and its new code.

    It is the module itself if the change is outside of functions.
    """
    was, becomes = (compile(it, str(file), "exec") for it in (file.read_text("utf-8"), text))
    for old, new in zip(outermost(was), outermost(becomes), strict=False):
        if not is_same(old, new):
            return (key_of(old), new) if key_of(old) == key_of(new) else (key_of(was), becomes)
    return key_of(was), becomes


def outermost(code: CodeType) -> Iterator[CodeType]:
    """The functions in a module or class that stand in no other one."""
    for it in code.co_consts:
        if isinstance(it, CodeType):
            yield from [it] if it.co_flags & inspect.CO_OPTIMIZED else outermost(it)


def is_same(one: object, other: object) -> bool:
    """Whether two codes, or two constants of them, mean the same; the lines that they stand in may differ."""
    if not isinstance(one, CodeType) or not isinstance(other, CodeType):
        return repr(one) == repr(other)
    if (one.co_code, one.co_names, one.co_varnames) != (other.co_code, other.co_names, other.co_varnames):
        return False
    return len(one.co_consts) == len(other.co_consts) and all(map(is_same, one.co_consts, other.co_consts))


def pytest_configure(config: pytest.Config) -> None:
    """Take the place of the tests."""
    trials, fates = os.environ["OUTLIVE_MUTATION_TRIALS"], os.environ["OUTLIVE_MUTATION_FATES"]
    config.pluginmanager.register(Warm(Path(trials), Path(fates)))
