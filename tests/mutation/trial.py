"""Which tests could see a mutant, and whether one of them does."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from compileall import compile_dir
from enum import Enum
from pathlib import Path
from py_compile import PycInvalidationMode
from typing import Any

import pytest

from tests.mutation.mutants import Mutant

PACKAGE = Path("src") / "outlive"
FORK_SECONDS = 6.0
"""How long the tests of the first look take, which is made in forks (`warm.py`)."""
LOOKS_SECONDS = (40.0, 120.0, 600.0)
"""How long the tests of each further look at a mutant take without it. The next look is for a mutant that survived: a
line may have a thousand tests."""
START_SECONDS = 60.0
"""What a run of tests may take besides: Python, pytest, a server."""
HANGS_SECONDS = 15
"""How long one test may take in a fork: all tests of a mutant take six seconds together there."""
SLOWNESS = 4
"""How much longer the tests may take with a mutant before it counts as one that hangs."""


IN_CHILDREN = {"_kernel/runtime/steps/process_child.py": ("_kernel/runtime/steps/processes.py", "target=serve")}
"""What runs in processes that are not watched: by file, where in another file such a process is started."""

STARTERS = {"_kernel/store/sqlite": ["fork", "faults", "liveness", "migrations"]}
"""By room, the tests whose children do what no test does itself; tried for lines that no test runs."""


NAMELESS = {"", "test", "kernel", "feature", "sql"}
"""Words in paths that say nothing about the subject."""

ASSIGNMENT = re.compile(r"(?P<what>self\.\w+) [-+]?= ")


NOT_COPIED = (
    ".git",
    ".venv*",
    ".mutation",
    ".pythons",
    ".*_cache",
    ".hypothesis",
    "__pycache__",
    "build",
    "node_modules",
)


class Fate(Enum):
    """What became of a mutant."""

    KILLED = "killed"
    SURVIVED = "survived"
    TIMED_OUT = "timed out"
    UNSEEN = "not covered"
    UNTRIED = "no fork"
    """It is changed where no fork can be, or its test fails in a fork without it."""


class Notes:
    """Which tests run which lines."""

    def __init__(self, folder: Path) -> None:
        self._seconds: dict[str, float] = {}
        self._lines: defaultdict[tuple[str, int], set[str]] = defaultdict(set)
        self.rooms: set[str] = set()
        """The rooms whose lines were noted."""
        for file in folder.glob("*.json"):
            notes = json.loads(file.read_text("utf-8"))
            self._seconds |= dict(notes["tests"])
            self.rooms |= set(notes["rooms"])
        for test, seconds in list(self._seconds.items()):
            if (module := test.partition("::")[0]) != test and module in self._seconds:
                self._seconds[module] += seconds
        for file in folder.glob("*.json"):
            notes = json.loads(file.read_text("utf-8"))
            names = [name for name, _ in notes["tests"]]
            for source, lines in notes["lines"].items():
                for line, numbers in lines.items():
                    self._lines[source, int(line)] |= {names[number] for number in numbers}

    def tests_of(self, root: Path, mutant: Mutant) -> list[str]:
        """The tests that run the changed line, by how much of its name their module shares with the file, then the
        quickest first; behind them whole modules that run it while they are imported, as what is made once is seen by
        other tests than the first that asks for it."""
        tests: set[str] = set()
        for file, line in self._places(root, mutant):
            tests |= self._lines.get((file, line), set())
        if found := ASSIGNMENT.match(mutant.before):
            # Who never reads what is kept here cannot miss it.
            file = str(Path(mutant.file).relative_to(PACKAGE))
            uses = set(_naming(root / PACKAGE, root / mutant.file, found["what"])) - {(file, mutant.line)}
            tests = tests & {test for place in uses for test in self._lines.get(place, set())} or tests
        tests = tests or {test for test in self._seconds if "::" in test and test.startswith(_starters(mutant))}
        words = _words(Path(mutant.file).relative_to(PACKAGE))

        def rank(test: str) -> tuple[bool, int, float, str]:
            module = Path(test.partition("::")[0])
            return "::" not in test, -len(words & _words(module)), self._seconds[test], test

        return sorted(tests, key=rank)

    def looks(self, tests: list[str], seconds: Sequence[float] = LOOKS_SECONDS) -> Iterator[list[str]]:
        """These tests in portions, each of tests that take so long or of one test, for one look after the other."""
        place = 0
        for most in seconds:
            first, left = place, most
            while place < len(tests) and (place == first or left >= self._seconds[tests[place]]):
                left -= self._seconds[tests[place]]
                place += 1
            if place > first:
                yield tests[first:place]

    def seconds_of(self, tests: list[str]) -> float:
        """How long these take when nothing is wrong."""
        return sum(self._seconds[test] for test in tests)

    def _places(self, root: Path, mutant: Mutant) -> list[tuple[str, int]]:
        package = root / PACKAGE
        file = Path(mutant.file).relative_to(PACKAGE)
        if (starter := IN_CHILDREN.get(str(file))) is not None:
            return [(str(file), mutant.line), *_naming(package, package / starter[0], starter[1])]
        if file.suffix == ".py":
            return [(str(file), mutant.line)]
        # A statement is run where it is named.
        sources = sorted((package / file.parent.parent).glob("*.py"))
        return [place for source in sources for place in _naming(package, source, f'"{file.stem}"')]


def _words(path: Path) -> set[str]:
    """The words in the name of a file and of its folders, in the singular."""
    return {word.rstrip("s") for part in path.with_suffix("").parts for word in part.split("_")} - NAMELESS


def _starters(mutant: Mutant) -> tuple[str, ...]:
    """How the names of tests begin that start children which run this room."""
    room = str(Path(mutant.file).relative_to(PACKAGE).parent)
    return tuple(f"tests/{Path(room).name}/test_{name}.py" for name in STARTERS.get(room, ()))


def _naming(package: Path, source: Path, text: str) -> list[tuple[str, int]]:
    """The lines of a source that contain a text."""
    lines = source.read_text("utf-8").splitlines()
    return [(str(source.relative_to(package)), number) for number, line in enumerate(lines, 1) if text in line]


def record(root: Path, folder: Path, tests: list[str], *, rooms: Sequence[str], jobs: int) -> None:
    """Run tests without any mutant, and note which lines of these rooms they run.

    Raises:
        RuntimeError: they could not be run; every mutant would seem to be covered by none.
    """
    folder.mkdir(parents=True, exist_ok=True)
    before = set(folder.glob("*.json"))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.mutation.recording", "-p", "no:cacheprovider"]
    # Tests are slower while they are watched.
    command += ["--timeout=300", "-p", "xdist.plugin", f"-n{jobs}", "--dist=loadfile", *tests]
    # This checkout, whichever one is installed.
    path = os.pathsep.join([str(root / "src"), str(root / "conformance" / "src"), str(root)])
    environment = os.environ | {"OUTLIVE_MUTATION_NOTES": str(folder), "OUTLIVE_MUTATION_ROOMS": " ".join(rooms)}
    environment["PYTHONPATH"] = path
    code = subprocess.run(command, cwd=root, env=environment, check=False).returncode
    new = set(folder.glob("*.json")) - before
    did_run = any("::" in name for file in new for name, _ in json.loads(file.read_text("utf-8"))["tests"])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) or not did_run:
        for file in new:
            file.unlink()
        raise RuntimeError(f"the tests did not run (pytest ended with {code}), so there is nothing to note")


class Copy:
    """A copy of the checkout that may be damaged."""

    def __init__(self, root: Path, folder: Path) -> None:
        self._root, self.folder = root, folder
        # Everything that a test may read: one that fails without a mutant would notice all of them.
        shutil.copytree(root, folder, ignore=shutil.ignore_patterns(*NOT_COPIED), dirs_exist_ok=True)
        # Known by its content: the time and the size of a file do not always tell a mutant from what it was made of.
        compile_dir(folder / PACKAGE, quiet=1, invalidation_mode=PycInvalidationMode.CHECKED_HASH)

    def try_in_forks(self, trials: Sequence[dict[str, Any]], fates: Path) -> None:
        """Try mutants in forks of one process, and add what becomes of each to a file.

        Raises:
            RuntimeError: the process did not try them all.
        """
        modules = {test.partition("::")[0] for trial in trials for test in trial["tests"]}
        place = self.folder / "trials.jsonl"
        place.write_text("".join(f"{json.dumps(trial)}\n" for trial in trials), "utf-8")
        command = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "tests.mutation.warm", "-p", "no:cacheprovider"]
        environment = self._environment() | {
            "OUTLIVE_MUTATION_TRIALS": str(place),
            "OUTLIVE_MUTATION_FATES": str(fates),
        }
        command += ["-o", f"timeout={HANGS_SECONDS}", *sorted(modules)]
        code = subprocess.run(
            command, cwd=self.folder, env=environment, stdout=subprocess.DEVNULL, check=False
        ).returncode
        if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            raise RuntimeError(f"mutants could not be tried in forks: pytest ended with {code}")

    def try_mutant(self, mutant: Mutant, tests: list[str], *, seconds: float) -> Fate:
        """Run tests against a mutant, until the first one fails."""
        if not tests:
            return Fate.UNSEEN
        place = self.folder / mutant.file
        place.write_text(mutant.text, "utf-8")
        try:
            code = self._run(tests, seconds=seconds * SLOWNESS + START_SECONDS)
        finally:
            shutil.copy(self._root / mutant.file, place)
        if code == pytest.ExitCode.USAGE_ERROR and self._run(tests, seconds=START_SECONDS) == code:
            raise LookupError(f"a test is gone since the lines were noted; note them again with --again: {tests}")
        return Fate.TIMED_OUT if code is None else Fate.KILLED if code else Fate.SURVIVED

    def _run(self, tests: list[str], *, seconds: float) -> int | None:
        command = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=no", "-p", "no:cacheprovider", *tests]
        with subprocess.Popen(
            command,
            cwd=self.folder,
            env=self._environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as process:
            try:
                return process.wait(seconds)
            except subprocess.TimeoutExpired:
                return None
            finally:
                if process.returncode is None:
                    os.killpg(process.pid, signal.SIGKILL)

    def _environment(self) -> dict[str, str]:
        paths = [str(self.folder / "src"), str(self.folder / "conformance" / "src")]
        return os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
