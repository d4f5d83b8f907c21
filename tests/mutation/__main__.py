"""`python -m tests.mutation`: plants one-line defects and sees whether the tests notice.

The tests of a room are run once without a defect, to see which of them run which lines; the notes are kept in
`.mutation` until `--again`. Then a sample of the mutants of each room is tried, each with the tests that run the
changed line.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import tomllib
from collections import Counter
from pathlib import Path

from outlive_conformance.servers.etcd import find_etcd
from tests.mutation.mutants import Mutant, mutants_of
from tests.mutation.trial import SECOND_LOOK_SECONDS_MAX, Copy, Fate, Notes, record, recorded_rooms

ROOT = Path(__file__).parents[2]
_OF_THE_ENGINE = (
    "approvals batches bringing_back changing_code concepts errors events finding generations kernel logging messages "
    "operating queues recovery sagas starting step_kinds steps store_failures streams sync values waiting worker "
    "workflows"
)
_OF_WORKERS = f"{_OF_THE_ENGINE} store sqlite postgres lease limits machine checkpoints fsck replay testing services"
TESTS = {
    "_kernel/runtime": _OF_WORKERS,
    "_kernel/store": _OF_WORKERS,
    "_kernel/lease": _OF_WORKERS,
    "_kernel/client": f"{_OF_THE_ENGINE} http schedules checkpoints fsck flow remote security services testing cli",
    "_features": f"{_OF_THE_ENGINE} http schedules fsck flow remote security services testing cli integrations",
    "http": "http security remote dashboard metrics",
    "_kernel/define": f"{_OF_THE_ENGINE} flow machine schedules replay remote security limits fsck",
    "remote": "remote",
}
"""By room, the folders with the tests that are about it: to watch all tests would cost more than it would show."""
ETCD = "src/outlive/_kernel/lease/etcd"
EQUIVALENT = Path(__file__).with_name("equivalent.toml")
GOAL = 0.95


def all_mutants(room: str, only: str = "") -> list[Mutant]:
    """Every mutant of a room but those that change nothing that can be seen; `only` is part of a file's name."""
    files = sorted(
        str(path.relative_to(ROOT))
        for path in (ROOT / "src" / "outlive" / room).rglob("*")
        if path.suffix in (".py", ".sql") and "migrations" not in path.parts
    )
    excused = {(it["file"], it["above"], it["before"], it["after"]) for it in equivalents()}
    mutants = [mutant for file in files if only in file for mutant in mutants_of(ROOT, file)]
    return [it for it in mutants if it.key not in excused]


def equivalents() -> list[dict[str, str]]:
    """Mutants that no test can tell from the code, each with its reason."""
    found: list[dict[str, str]] = tomllib.loads(EQUIVALENT.read_text("utf-8")).get("mutant", [])
    return found


def main() -> int:
    """Try a sample; 1 if too many survive."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--mutants", type=int, default=40, help="how many are tried, of all rooms together")
    parser.add_argument("--seed", type=int, default=0, help="which ones")
    parser.add_argument("--rooms", nargs="*", default=list(TESTS), choices=list(TESTS), help="where they are planted")
    parser.add_argument("--only", default="", help="part of the name of a file")
    parser.add_argument("--jobs", type=int, default=2, help="processes that run the tests without a mutant")
    parser.add_argument("--again", action="store_true", help="see again which tests run which lines")
    wanted = parser.parse_args()
    folder = ROOT / ".mutation"
    if wanted.again:
        for file in folder.glob("*.json"):
            file.unlink()
    new = [room for room in wanted.rooms if room not in recorded_rooms(folder)]
    if new:
        folders = dict.fromkeys(name for room in new for name in TESTS[room].split())
        record(ROOT, folder, [f"tests/{name}" for name in folders], rooms=new, jobs=wanted.jobs)
    mutants = {room: all_mutants(room, wanted.only) for room in wanted.rooms}
    if find_etcd() is None and "_lease" in mutants:
        say(f"the mutants of {ETCD} are left out: their tests need etcd, and there is none here")
        mutants["_lease"] = [it for it in mutants["_lease"] if not it.file.startswith(ETCD)]
    # Each room has the same share: a large one would hide what the tests of a small one miss.
    share = -(-wanted.mutants // len(wanted.rooms))
    rng = random.Random(wanted.seed)
    chosen = {room: rng.sample(of_room, min(share, len(of_room))) for room, of_room in mutants.items()}
    return report(chosen, Notes(folder))


def report(chosen: dict[str, list[Mutant]], notes: Notes) -> int:
    """Try each of them, say what became of it, and sum up."""
    fates = {room: Counter[Fate]() for room in chosen}
    with tempfile.TemporaryDirectory(prefix="outlive-mutation-") as place:
        Path(place).chmod(0o755)  # A server that is not run by root reads its programs here.
        copy = Copy(ROOT, Path(place))
        for room, mutants in chosen.items():
            for number, mutant in enumerate(mutants, 1):
                tests = notes.tests_of(ROOT, mutant)
                fate = copy.try_mutant(mutant, tests, seconds=notes.seconds_of(tests))
                if fate is Fate.SURVIVED:
                    more = notes.tests_of(ROOT, mutant, seconds_max=SECOND_LOOK_SECONDS_MAX)
                    if others := [test for test in more if test not in tests]:
                        fate = copy.try_mutant(mutant, others, seconds=notes.seconds_of(others))
                        tests += others
                fates[room][fate] += 1
                say(f"{number:4} {fate.value:12} {len(tests):4} tests  {mutant}")
    say("")
    for room, of_room in fates.items():
        say(f"{room:10} {_noticed(of_room)} of {of_room.total()} noticed")
    noticed, tried = sum(map(_noticed, fates.values())), max(1, sum(each.total() for each in fates.values()))
    say(f"{noticed / tried:.0%} of {tried} noticed; the goal is {GOAL:.0%}")
    return 0 if noticed / tried >= GOAL else 1


def _noticed(fates: Counter[Fate]) -> int:
    return fates[Fate.KILLED] + fates[Fate.TIMED_OUT]


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
