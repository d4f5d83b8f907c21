"""The tool that plants defects plants real ones, finds the tests that could see them, and tells the truth."""

from __future__ import annotations

import ast
import json
import shutil
from pathlib import Path

import pytest

from tests.mutation import __main__ as tool
from tests.mutation.__main__ import (
    ETCD,
    ROOMS,
    ROOT,
    SPARED,
    UNTRIED,
    all_mutants,
    equivalents,
    fates_in,
    report,
    sample,
    trial_of,
)
from tests.mutation.mutants import Mutant, mutants_of
from tests.mutation.trial import IN_CHILDREN, LOOKS_SECONDS, PACKAGE, STARTERS, Copy, Fate, Notes, record

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


def test_changes_that_mean_the_same_by_their_form_are_no_mutants(tmp_path: Path) -> None:
    """A clock does not show a limit to the last digit, no place is below 0, and a field that nothing reads is lost.

    The clock of a store is exact, a write is refused behind another place than the stated one, and a field that
    is read may be asked for after the end: these are mutants."""
    text = """
def look(self, found):
    if loop.time() >= until:
        raise ValueError
    if store.now() >= until:
        after = -1
    read(found, after=-1)
    return Change(found, after=-1)

def close(self):
    self._lost = False
    self._open = False

def is_open(self):
    return self._open
"""

    assert changes_of(tmp_path, text) == {
        ("raise ValueError", "pass"),
        ("store.now() >= until", "(store.now() > until)"),
        ("read(found, after=-1)", "pass"),
        ("1", "(2)"),
        ("self._open = False", "pass"),
        ("False", "(True)"),
    }
    assert [mutant.line for mutant in mutants_of(tmp_path, "thing.py") if mutant.before == "1"] == [8]


def test_every_module_belongs_to_a_room_or_is_spared_with_a_reason() -> None:
    """Code that moves out of a room would no longer be tried, and nothing would tell."""
    spared = " ".join(SPARED).split()
    places = [*ROOMS, *spared]

    for place in places:
        assert (ROOT / PACKAGE / place).exists(), place
    for path in (ROOT / PACKAGE).rglob("*.py"):
        name = str(path.relative_to(ROOT / PACKAGE))
        of = [place for place in places if name == place or name.startswith(f"{place}/")]
        assert len(of) == 1 or path.name == "__init__.py", f"{name} is in {of}; put it into ROOMS or SPARED"


def test_all_tests_but_some_are_tried() -> None:
    """A folder of tests that is not tried is there, and says why; the rest cannot be forgotten."""
    assert [name for name in UNTRIED if not (ROOT / "tests" / name).is_dir()] == []
    assert {"tests/cel", "tests/fleet", "tests/remote"} <= set(tool.test_folders())
    assert not {f"tests/{name}" for name in UNTRIED} & set(tool.test_folders())


def test_room_of_leases_is_tried_without_etcd(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without etcd, defects are planted in the other leases only, and the tool says so."""
    room = "_kernel/lease"
    assert any(mutant.file.startswith(ETCD) for mutant in sample([room], "", mutants=1_000, seed=0)[room])
    monkeypatch.setattr(tool, "find_etcd", lambda: None)

    chosen = sample([room], "", mutants=1_000, seed=0)[room]

    assert chosen
    assert not [mutant for mutant in chosen if mutant.file.startswith(ETCD)]
    assert "left out" in capsys.readouterr().out


def test_tests_that_cannot_be_run_leave_no_notes(tmp_path: Path) -> None:
    """Every mutant would seem to be covered by no test."""
    notes = tmp_path / "notes"

    with pytest.raises(RuntimeError, match="the tests did not run"):
        record(ROOT, notes, ["tests/gone"], rooms=["remote"], jobs=0)

    assert list(notes.glob("*.json")) == []


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
    (tmp_path / "1.json").write_text(json.dumps({"rooms": [], "tests": tests, "lines": lines}))
    notes = Notes(tmp_path)

    for file, line in (("read.py", 2), ("sql/find.sql", 7)):
        mutant = Mutant(f"src/outlive/_kernel/store/x/{file}", line, "", "", "")
        assert notes.tests_of(tmp_path, mutant) == ["quick", "slow"]


def test_tests_about_the_changed_file_are_tried_first(tmp_path: Path) -> None:
    """The test that would notice may be slow: it comes before quicker tests of something else."""
    names = ["tests/values/test_page.py::a", "tests/queues/test_claiming.py::b", "tests/queues/test_fair.py::c"]
    tests = [(names[0], 0.1), (names[1], 30.0), (names[2], 2.0)]
    (tmp_path / "1.json").write_text(
        json.dumps({"rooms": [], "tests": tests, "lines": {"x/queue/claiming.py": {"2": [0, 1, 2]}}})
    )

    mutant = Mutant(str(PACKAGE / "x" / "queue" / "claiming.py"), 2, "", "", "")
    assert Notes(tmp_path).tests_of(ROOT, mutant) == [names[1], names[2], names[0]]


def test_each_look_at_a_survivor_takes_longer(tmp_path: Path) -> None:
    """A look has tests for its seconds, and one at least; the last look leaves out what does not fit."""
    seconds = [("a", 30.0), ("b", 9.0), ("c", 300.0), ("d", 500.0), ("e", 50.0), ("f", 90.0)]
    (tmp_path / "1.json").write_text(json.dumps({"rooms": [], "tests": seconds, "lines": {}}))
    notes = Notes(tmp_path)

    assert LOOKS_SECONDS == (40.0, 120.0, 600.0)
    assert list(notes.looks(["a", "b", "c", "d", "e", "f"])) == [["a", "b"], ["c"], ["d", "e"]]
    assert list(notes.looks([])) == []


def test_module_that_runs_the_line_while_it_is_imported_is_tried_behind_the_tests(tmp_path: Path) -> None:
    """A module that runs the line while it is imported is tried as a whole, behind the tests that run the line."""
    tests = [("tests/test_flow.py", 0.0), ("tests/test_flow.py::test_a", 2.0), ("tests/test_other.py::test_b", 1.0)]
    (tmp_path / "1.json").write_text(
        json.dumps({"rooms": [], "tests": tests, "lines": {"x.py": {"1": [0], "2": [0, 2]}}})
    )
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
    notes = {
        "rooms": [],
        "tests": [("quick", 0.1), ("slow", 2.0)],
        "lines": {"_kernel/store/pool.py": {"2": [0, 1], "4": [1]}},
    }
    (tmp_path / "1.json").write_text(json.dumps(notes))

    mutant = Mutant("src/outlive/_kernel/store/pool.py", 2, "self._kept = 1", "pass", "")
    assert Notes(tmp_path).tests_of(tmp_path, mutant) == ["slow"]


def test_code_of_a_child_process_is_tried_with_the_tests_that_start_one(tmp_path: Path) -> None:
    """A mutant of code that runs in a child process is tried with the tests that start one."""
    ((file, (starter, text)),) = IN_CHILDREN.items()
    (number,) = [
        number for number, line in enumerate((ROOT / PACKAGE / starter).read_text().splitlines(), 1) if text in line
    ]
    notes = {
        "rooms": [],
        "tests": [("starts one", 0.1), ("other", 0.1)],
        "lines": {starter: {str(number): [0], "1": [1]}},
    }
    (tmp_path / "1.json").write_text(json.dumps(notes))

    assert Notes(tmp_path).tests_of(ROOT, Mutant(str(PACKAGE / file), 100, "", "", "")) == ["starts one"]


def test_code_that_no_test_runs_is_tried_with_tests_whose_children_may_run_it(tmp_path: Path) -> None:
    """A mutant of a line that no test runs is tried with the tests of its room that start children."""
    ((room, (name, *_)),) = STARTERS.items()
    starter = f"tests/{Path(room).name}/test_{name}.py::test"
    assert (ROOT / starter.partition("::")[0]).exists()
    notes = {"rooms": [], "tests": [(starter, 0.1), ("other", 0.1)], "lines": {f"{room}/lock.py": {"1": [1]}}}
    (tmp_path / "1.json").write_text(json.dumps(notes))

    for file, line, tests in ((f"{room}/lock.py", 1, "other"), (f"{room}/lock.py", 2, starter), ("x/lock.py", 2, "")):
        mutant = Mutant(str(PACKAGE / file), line, "", "", "")
        assert Notes(tmp_path).tests_of(ROOT, mutant) == [tests] * bool(tests)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A small program with two tests."""
    root = tmp_path / "root"
    (root / "src" / "outlive").mkdir(parents=True)
    (root / "tests").mkdir()
    (root / "pyproject.toml").write_text('[tool.pytest.ini_options]\naddopts = "--disable-plugin-autoload"\n')
    (root / "src" / "outlive" / "__init__.py").write_text("")
    (root / "src" / "outlive" / "oracle.py").write_text("def answer(): return 42\n")
    (root / "tests" / "test_answer.py").write_text(
        "from outlive.oracle import answer\ndef test(): assert answer() == 42\n"
    )
    (root / "tests" / "test_other.py").write_text("def test(): pass\n")
    return root


@pytest.fixture
def damaged(tmp_path: Path, root: Path) -> tuple[Copy, Mutant]:
    """A copy of a small program, and a defect for it."""
    (mutant,) = mutants_of(root, "src/outlive/oracle.py")
    return Copy(root, tmp_path / "copy"), mutant


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

    assert (copy.folder / "src" / "outlive" / "oracle.py").read_text() == "def answer(): return 42\n"


def test_a_test_that_is_gone_kills_nothing(damaged: tuple[Copy, Mutant]) -> None:
    """The notes are older than the tests: every mutant would seem to be noticed."""
    copy, mutant = damaged

    with pytest.raises(LookupError, match="--again"):
        copy.try_mutant(mutant, ["tests/test_gone.py"], seconds=1)


def test_trials_are_made_side_by_side_and_reported_in_order(
    tmp_path: Path, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each trial has a copy of its own; a mutant that survives the first look gets the others."""
    (mutant,) = mutants_of(root, "src/outlive/oracle.py")
    tests = [("tests/test_other.py::test", 30.0), ("tests/test_answer.py::test", 40.0)]
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "1.json").write_text(json.dumps({"rooms": [], "tests": tests, "lines": {"oracle.py": {"1": [0, 1]}}}))
    unseen = Mutant(mutant.file, 2, "a", "b", mutant.text)
    copies = [Copy(root, tmp_path / name) for name in ("one", "two")]

    noticed = Mutant(mutant.file, 3, "a", "b", "")
    known = {noticed.digest: Fate.KILLED, mutant.digest: Fate.SURVIVED}
    assert report({"room": [mutant, unseen, noticed]}, Notes(notes), copies, LOOKS_SECONDS, known) == 1

    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:3] for line in lines if "tests" in line and ":" not in line[:5]][:2] == [
        ["1", "killed", "2"],
        ["2", "not", "covered"],
    ]
    assert lines[-1] == "67% of 3 noticed; the goal is 95%"


ORACLE = """
LIMIT = 3

class Oracle:
    def answer(self):
        return [it for it in range(9) if it < LIMIT]

def wait():
    at = 0
    while at < 1:
        at += 1
    return at
"""
TESTS = """
import os
from outlive import oracle
PROCESS = os.getpid()

def test_answer(): assert oracle.Oracle().answer() == [0, 1, 2]
def test_wait(): assert oracle.wait() == 1
def test_passes(): pass
def test_process(): assert os.getpid() == PROCESS
"""


def test_mutants_of_functions_are_tried_in_forks(tmp_path: Path, root: Path) -> None:
    """Each fork has one mutant, and none of the fork before. A test that fails in every fork notices nothing, and what
    is changed outside of functions is not tried."""
    (root / "src" / "outlive" / "oracle.py").write_text(ORACLE)
    (root / "tests" / "test_answer.py").write_text(TESTS)
    (root / "tests" / "mutation").mkdir()
    for name in ("warm.py", "trial.py", "mutants.py"):
        shutil.copy(Path(__file__).with_name(name), root / "tests" / "mutation" / name)
    outside = ORACLE.replace("LIMIT = 3", "LIMIT = 4")
    file, below = "src/outlive/oracle.py", {it.before: it for it in mutants_of(root, "src/outlive/oracle.py")}
    trials = [
        (below["it < LIMIT"], ["test_passes", "test_answer"]),
        (below["it < LIMIT"], ["test_passes", "test_wait"]),
        (below["at < 1"], ["test_answer", "test_wait"]),
        (below["it < LIMIT"], ["test_process", "test_answer"]),
        (Mutant(file, 2, "", "", outside), ["test_answer"]),
        (below["it < LIMIT"], ["test_answer"]),
    ]
    fates = tmp_path / "fates.jsonl"

    Copy(root, tmp_path / "copy").try_in_forks(
        [trial_of(mutant, [f"tests/test_answer.py::{test}" for test in tests], 1.0) for mutant, tests in trials], fates
    )

    found = [json.loads(line)["fate"] for line in fates.read_text().splitlines()]
    assert found == ["killed", "survived", "killed", "no fork", "no fork", "killed"]
    assert fates_in(fates)[below["at < 1"].digest] is Fate.KILLED
