"""A plugin of pytest that notes which tests run which lines, and how long each of them takes.

It is given the folder for its notes in `OUTLIVE_MUTATION_NOTES`, and the rooms whose lines it notes in
`OUTLIVE_MUTATION_ROOMS`. Each process of the tests writes a file of its own.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import coverage
import pytest

import outlive

PACKAGE = Path(outlive.__file__).parent


class Recorder:
    """Notes the lines of one process."""

    def __init__(self, folder: Path, rooms: list[str]) -> None:
        self._folder, self._rooms = folder, rooms
        self._seconds: dict[str, float] = {}
        self._failed: set[str] = set()
        places = [str(PACKAGE / room) for room in rooms]
        self._coverage = coverage.Coverage(data_file=None, source=places, branch=False, config_file=False)
        self._coverage.start()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Iterator[None]:
        """What a module of tests runs while it is imported, such as a flow that it defines, is of the module."""
        is_module = isinstance(collector, pytest.Module)
        if is_module:
            self._coverage.switch_context(collector.nodeid)
            self._seconds[collector.nodeid] = 0.0
        yield
        if is_module:
            self._coverage.switch_context("")

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Everything from here on is of this test."""
        self._coverage.switch_context(item.nodeid)
        yield
        self._coverage.switch_context("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test that fails without any mutant says nothing about one."""
        self._seconds[report.nodeid] = self._seconds.get(report.nodeid, 0.0) + report.duration
        if not report.passed:
            self._failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """Write the notes down."""
        self._coverage.stop()
        data = self._coverage.get_data()
        good = [test for test in self._seconds if test not in self._failed]
        numbers = {test: number for number, test in enumerate(good)}
        lines: dict[str, dict[int, list[int]]] = defaultdict(dict)
        for file in data.measured_files():
            for line, tests in data.contexts_by_lineno(file).items():
                lines[str(Path(file).relative_to(PACKAGE))][line] = [numbers[test] for test in tests if test in numbers]
        notes = {"rooms": self._rooms, "tests": [(test, self._seconds[test]) for test in good], "lines": lines}
        (self._folder / f"{os.getpid()}.json").write_text(json.dumps(notes), "utf-8")


def pytest_configure(config: pytest.Config) -> None:
    """Record in the processes that run tests; the process that only hands tests out has nothing to note."""
    if not getattr(config.option, "numprocesses", None):
        folder, rooms = os.environ["OUTLIVE_MUTATION_NOTES"], os.environ["OUTLIVE_MUTATION_ROOMS"]
        config.pluginmanager.register(Recorder(Path(folder), rooms.split()))
