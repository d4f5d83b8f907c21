"""The tool that plants defects plants real ones, finds the tests that could see them, and tells the truth."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from tests.mutation.__main__ import ROOT, TESTS, all_mutants, equivalents
from tests.mutation.mutants import Mutant, mutants_of
from tests.mutation.trial import IN_CHILDREN, PACKAGE, STARTERS, Copy, Fate, Notes, record, recorded_rooms

SOURCE = '''
"""A module."""
from typing import TYPE_CHECKING

LIMIT: int = 3


class Thing:
    """A thing."""

    def look(self, at: int = 1) -> bool:
        """A docstring."""
        assert at < 5
        log.info("looking")
        if at < LIMIT and not self.is_blind:
            self.seen = True
            self.note(at)
        zip(self.seen, at, strict=True)
        del at
        del self.seen
        if self.seen:
            raise AssertionError("never")
        raise ValueError
'''


def changes_of(root: Path, text: str, file: str = "thing.py") -> set[tuple[str, str]]:
    """What becomes of what."""
    (root / file).write_text(text)
    return {(mutant.before, mutant.after) for mutant in mutants_of(root, file)}


def test_mutants_change_what_code_does_and_not_what_it_says(tmp_path: Path) -> None:
    """Comparisons, conditions, values and statements are changed; assertions, log lines, defaults, docstrings and
    constants are not."""
    assert changes_of(tmp_path, SOURCE) == {
        ("at < LIMIT and not self.is_blind", "(at < LIMIT or not self.is_blind)"),
        ("at < LIMIT", "(at <= LIMIT)"),
        ("not self.is_blind", "(self.is_blind)"),
        ("self.seen = True", "pass"),
        ("True", "(False)"),
        ("self.note(at)", "pass"),
        ("zip(self.seen, at, strict=True)", "pass"),
        ("del self.seen", "pass"),
        ("self.seen", "(not self.seen)"),
        ("raise ValueError", "pass"),
    }


def test_predicate_of_a_statement_is_dropped(tmp_path: Path) -> None:
    """It stays named, so that the types of parameters are known; one that goes over several lines is left alone."""
    text = "SELECT 1\nFROM runs\nWHERE a = $1\n    AND b > $2\n    AND EXISTS (\n        SELECT 1\n    )\n"

    assert changes_of(tmp_path, text, "find.sql") == {("AND b > $2", "AND ((b > $2) OR true)")}


def test_every_mutant_is_a_program() -> None:
    """A file that cannot be read would be noticed by every test, and prove nothing."""
    mutants = [
        mutant for mutant in all_mutants("_kernel/runtime", "commit/committer.py") if mutant.file.endswith(".py")
    ]

    assert len(mutants) > 50
    for mutant in mutants:
        ast.parse(mutant.text)


def test_every_room_and_every_folder_of_its_tests_is_there() -> None:
    """A misspelt folder would leave a room without the tests that notice its defects."""
    for room, folders in TESTS.items():
        assert (ROOT / PACKAGE / room).is_dir()
        assert [name for name in folders.split() if not (ROOT / "tests" / name).is_dir()] == []


def test_rooms_that_were_watched_are_not_watched_again(tmp_path: Path) -> None:
    """Each file of notes says which rooms it is about."""
    assert recorded_rooms(tmp_path) == set()
    for name, rooms in (("1", ["client", "http"]), ("2", ["remote"])):
        (tmp_path / f"{name}.json").write_text(json.dumps({"rooms": rooms, "tests": [], "lines": {}}))

    assert recorded_rooms(tmp_path) == {"client", "http", "remote"}


def test_tests_that_cannot_be_run_leave_no_notes(tmp_path: Path) -> None:
    """Every mutant would seem to be covered by no test."""
    notes = tmp_path / "notes"

    with pytest.raises(RuntimeError, match="the tests did not run"):
        record(ROOT, notes, ["tests/gone"], rooms=["remote"], jobs=0)

    assert recorded_rooms(notes) == set()


def test_excuses_are_for_mutants_that_exist() -> None:
    """One that is no longer needed goes, and each has a reason."""
    for excuse in equivalents():
        key = excuse["file"], excuse["above"], excuse["before"], excuse["after"]
        assert key in {mutant.key for mutant in mutants_of(ROOT, excuse["file"])}, excuse
        assert excuse["reason"]


def test_tests_that_run_the_line_are_chosen_the_quickest_first(tmp_path: Path) -> None:
    """The tests that run a line are chosen, the quickest first; a statement of SQL counts as run where it is named."""
    package = tmp_path / "src" / "outlive" / "_kernel" / "store" / "x"
    (package / "sql").mkdir(parents=True)
    (package / "read.py").write_text('rows = 1\nfetch("find")\n')
    tests = [("slow", 2.0), ("quick", 0.1), ("other", 0.1)]
    lines = {"_kernel/store/x/read.py": {"2": [0, 1], "1": [2]}}
    (tmp_path / "1.json").write_text(json.dumps({"tests": tests, "lines": lines}))
    notes = Notes(tmp_path)

    for file, line in (("read.py", 2), ("sql/find.sql", 7)):
        mutant = Mutant(f"src/outlive/_kernel/store/x/{file}", line, "", "", "")
        assert notes.tests_of(tmp_path, mutant) == ["quick", "slow"]


def test_module_that_runs_the_line_while_it_is_imported_is_tried_behind_the_tests(tmp_path: Path) -> None:
    """A module that runs the line while it is imported is tried as a whole, behind the tests that run the line."""
    tests = [("tests/test_flow.py", 0.0), ("tests/test_flow.py::test_a", 2.0), ("tests/test_other.py::test_b", 1.0)]
    (tmp_path / "1.json").write_text(json.dumps({"tests": tests, "lines": {"x.py": {"1": [0], "2": [0, 2]}}}))
    notes = Notes(tmp_path)

    assert [notes.tests_of(ROOT, Mutant(str(PACKAGE / "x.py"), line, "", "", "")) for line in (1, 2)] == [
        ["tests/test_flow.py"],
        ["tests/test_other.py::test_b", "tests/test_flow.py"],
    ]
    assert notes.seconds_of(["tests/test_flow.py"]) == 2.0


def test_a_kept_value_is_tried_with_the_tests_that_read_it(tmp_path: Path) -> None:
    """A mutant of a value that is kept is tried with the tests that read it."""
    package = tmp_path / "src" / "outlive" / "_kernel" / "store"
    package.mkdir(parents=True)
    (package / "pool.py").write_text(
        "def __init__(self):\n    self._kept = 1\ndef trim(self):\n    return self._kept\n"
    )
    notes = {"tests": [("quick", 0.1), ("slow", 2.0)], "lines": {"_kernel/store/pool.py": {"2": [0, 1], "4": [1]}}}
    (tmp_path / "1.json").write_text(json.dumps(notes))

    mutant = Mutant("src/outlive/_kernel/store/pool.py", 2, "self._kept = 1", "pass", "")
    assert Notes(tmp_path).tests_of(tmp_path, mutant) == ["slow"]


def test_code_of_a_child_process_is_tried_with_the_tests_that_start_one(tmp_path: Path) -> None:
    """A mutant of code that runs in a child process is tried with the tests that start one."""
    ((file, (starter, text)),) = IN_CHILDREN.items()
    (number,) = [
        number for number, line in enumerate((ROOT / PACKAGE / starter).read_text().splitlines(), 1) if text in line
    ]
    notes = {"tests": [("starts one", 0.1), ("other", 0.1)], "lines": {starter: {str(number): [0], "1": [1]}}}
    (tmp_path / "1.json").write_text(json.dumps(notes))

    assert Notes(tmp_path).tests_of(ROOT, Mutant(str(PACKAGE / file), 100, "", "", "")) == ["starts one"]


def test_code_that_no_test_runs_is_tried_with_tests_whose_children_may_run_it(tmp_path: Path) -> None:
    """A mutant of a line that no test runs is tried with the tests of its room that start children."""
    ((room, (name, *_)),) = STARTERS.items()
    starter = f"tests/{Path(room).name}/test_{name}.py::test"
    assert (ROOT / starter.partition("::")[0]).exists()
    notes = {"tests": [(starter, 0.1), ("other", 0.1)], "lines": {f"{room}/lock.py": {"1": [1]}}}
    (tmp_path / "1.json").write_text(json.dumps(notes))

    for file, line, tests in ((f"{room}/lock.py", 1, "other"), (f"{room}/lock.py", 2, starter), ("x/lock.py", 2, "")):
        mutant = Mutant(str(PACKAGE / file), line, "", "", "")
        assert Notes(tmp_path).tests_of(ROOT, mutant) == [tests] * bool(tests)


@pytest.fixture
def damaged(tmp_path: Path) -> tuple[Copy, Mutant]:
    """A copy of a small program, and a defect for it."""
    root, copy = tmp_path / "root", tmp_path / "copy"
    for name in ("src", "conformance", "tests", "proof", "docs", "examples"):
        (root / name).mkdir(parents=True)
    copy.mkdir()
    (root / "README.md").write_text("")
    (root / "pyproject.toml").write_text('[tool.pytest.ini_options]\naddopts = "--disable-plugin-autoload"\n')
    (root / "src" / "answer.py").write_text("def answer(): return 42\n")
    (root / "tests" / "test_answer.py").write_text("from answer import answer\ndef test(): assert answer() == 42\n")
    (root / "tests" / "test_other.py").write_text("def test(): pass\n")
    (mutant,) = mutants_of(root, "src/answer.py")
    return Copy(root, copy), mutant


@pytest.mark.parametrize(
    ("tests", "fate"),
    [(["tests/test_answer.py"], Fate.KILLED), (["tests/test_other.py"], Fate.SURVIVED), ([], Fate.UNSEEN)],
    ids=["killed", "survived", "not covered"],
)
def test_mutant_is_killed_by_a_test_that_fails_with_it(
    damaged: tuple[Copy, Mutant], tests: list[str], fate: Fate
) -> None:
    """Only the copy is damaged, and it is whole again afterwards."""
    copy, mutant = damaged

    assert copy.try_mutant(mutant, tests, seconds=1) is fate

    assert (copy.folder / "src" / "answer.py").read_text() == "def answer(): return 42\n"


def test_a_test_that_is_gone_kills_nothing(damaged: tuple[Copy, Mutant]) -> None:
    """The notes are older than the tests: every mutant would seem to be noticed."""
    copy, mutant = damaged

    with pytest.raises(LookupError, match="--again"):
        copy.try_mutant(mutant, ["tests/test_gone.py"], seconds=1)
