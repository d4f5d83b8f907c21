"""`python -m tests.mutation`: plants one-line defects and sees whether the tests notice.

The tests are run once without a defect, to see which of them run which lines; the notes are kept in `.mutation` until
`--again`. Then a sample of all mutants is tried, each with the tests that run the changed line.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import tomllib
from collections import Counter
from pathlib import Path

from outlive.testing.etcd import find_etcd
from tests.mutation.mutants import Mutant, mutants_of
from tests.mutation.recording import ROOMS
from tests.mutation.trial import Copy, Fate, Notes, record

ROOT = Path(__file__).parents[2]
FOLDERS = """
engine store sqlite postgres lease limits machine checkpoints fsck replay testing
http remote flow schedules security services journal deploy
"""
TESTS = [f"tests/{folder}" for folder in FOLDERS.split()]
ETCD = "src/outlive/_lease/etcd"
EQUIVALENT = Path(__file__).with_name("equivalent.toml")
GOAL = 0.9


def all_mutants(only: str = "") -> list[Mutant]:
    """Every mutant of the rooms but those that change nothing that can be seen; `only` is part of a file's name."""
    files = sorted(
        str(path.relative_to(ROOT))
        for room in ROOMS
        for path in (ROOT / "src/outlive" / room).rglob("*")
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
    parser.add_argument("--mutants", type=int, default=40, help="how many are tried")
    parser.add_argument("--seed", type=int, default=0, help="which ones")
    parser.add_argument("--only", default="", help="part of the name of a file")
    parser.add_argument("--jobs", type=int, default=2, help="processes that run the tests without a mutant")
    parser.add_argument("--tests", nargs="*", default=TESTS, help="which tests may be chosen from")
    parser.add_argument("--again", action="store_true", help="see again which tests run which lines")
    wanted = parser.parse_args()
    folder = ROOT / ".mutation"
    if wanted.again:
        for file in folder.glob("*.json"):
            file.unlink()
    if not any(folder.glob("*.json")):
        record(ROOT, folder, wanted.tests, jobs=wanted.jobs)
    mutants = all_mutants(wanted.only)
    if find_etcd() is None:
        say(f"the mutants of {ETCD} are left out: their tests need etcd, and there is none here")
        mutants = [it for it in mutants if not it.file.startswith(ETCD)]
    chosen = random.Random(wanted.seed).sample(mutants, min(wanted.mutants, len(mutants)))
    return report(chosen, Notes(folder), of=len(mutants))


def report(chosen: list[Mutant], notes: Notes, *, of: int) -> int:
    """Try each of them, say what became of it, and sum up."""
    fates: Counter[Fate] = Counter()
    with tempfile.TemporaryDirectory(prefix="outlive-mutation-") as place:
        Path(place).chmod(0o755)  # A server that is not run by root reads its programs here.
        copy = Copy(ROOT, Path(place))
        for number, mutant in enumerate(chosen, 1):
            tests = notes.tests_of(ROOT, mutant)
            fate = copy.try_mutant(mutant, tests, seconds=notes.seconds_of(tests))
            fates[fate] += 1
            say(f"{number:4} {fate.value:12} {len(tests):4} tests  {mutant}")
    killed = fates[Fate.KILLED] + fates[Fate.TIMED_OUT]
    say("")
    for fate in Fate:
        say(f"{fate.value:12} {fates[fate]:4}")
    share = killed / max(1, len(chosen))
    say(f"{share:.0%} of {len(chosen)} killed (a sample of {of}); the goal is {GOAL:.0%}")
    return 0 if share >= GOAL else 1


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
