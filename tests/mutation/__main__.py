"""`python -m tests.mutation`: plants one-line defects and sees whether the tests notice.

All tests are run once without a defect, to see which of them run which lines of the rooms; the notes are kept in
`.mutation` until `--again`. Then a sample of the mutants of each room is tried, each with the tests that run the
changed line: for some seconds in a fork of a process that has imported everything, and if it survives, in a process of
its own. What became of a mutant in a fork is kept in `.mutation` too, so a sweep that was ended goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from outlive_conformance.servers.etcd import find_etcd
from tests.mutation.mutants import Mutant, mutants_of
from tests.mutation.trial import FORK_SECONDS, LOOKS_SECONDS, PACKAGE, Copy, Fate, Notes, record

ROOT = Path(__file__).parents[2]
ROOMS = (
    "_kernel/runtime",
    "_kernel/store",
    "_kernel/lease",
    "_kernel/client",
    "_features",
    "http",
    "_kernel/define",
    "remote",
    "_cel",
    "engine",
    "_kernel/journal",
    "_kernel/model",
    "_kernel/replay",
    "_kernel/values",
)
"""Where defects are planted."""
SPARED = {
    "_interrupts.py _on_demand.py _platform.py _tasks.py": "how systems and releases of Python differ",
    "_garbage_collection.py": "how fast a document is read, and nothing else",
    "_kernel/cells.py _kernel/feature.py _kernel/in_engine.py": "tables",
    "cli config dashboard demo dev metrics": "what people see first; a run neither ends nor is lost by it",
    "checkpoints.py codecs.py events.py flow.py limits.py machine.py middleware.py retention.py types.py": "names",
    "stores.py": "names for authors of stores",
    "errors telemetry.py": "messages",
    "integrations testing": "they ride on the engine as the programs of users do",
}
"""The rest of the package, with the reason."""
UNTRIED = {
    "e2e": "tests in a browser",
    "house": "they read the source, and run none of it",
    "live": "two minutes with an application",
    "mutation": "this tool",
    "typing": "they read the source, and run none of it",
}
"""Folders of tests that notice no mutant, with the reason; all others are run once, for all rooms."""
ETCD = "src/outlive/_kernel/lease/etcd"
EQUIVALENT = Path(__file__).with_name("equivalent.toml")
GOAL = 0.95
NOTICED = (Fate.KILLED, Fate.TIMED_OUT)


def all_mutants(room: str, only: str = "") -> list[Mutant]:
    """Every mutant of a room, without the mutants that change nothing visible; `only` is part of a file's name."""
    files = sorted(
        str(path.relative_to(ROOT))
        for path in (ROOT / PACKAGE / room).rglob("*")
        if path.suffix in (".py", ".sql") and "migrations" not in path.parts
    )
    excused = {(it["file"], it["above"], it["before"], it["after"]) for it in equivalents()}
    mutants = [mutant for file in files if only in file for mutant in mutants_of(ROOT, file)]
    return [it for it in mutants if it.key not in excused]


def equivalents() -> list[dict[str, str]]:
    """Mutants that no test can tell from the code, each with its reason."""
    found: list[dict[str, str]] = tomllib.loads(EQUIVALENT.read_text("utf-8")).get("mutant", [])
    return found


def test_folders() -> list[str]:
    """The folders of the tests that may notice a mutant."""
    names = {it.parent.name for it in (ROOT / "tests").glob("*/test_*.py")}
    return [f"tests/{name}" for name in sorted(names - UNTRIED.keys())]


def main() -> int:
    """Try a sample; 1 if too many survive."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--mutants", type=int, default=40, help="how many are tried, of all rooms together")
    parser.add_argument("--seed", type=int, default=0, help="which ones")
    parser.add_argument("--rooms", nargs="*", default=list(ROOMS), choices=ROOMS, help="where they are planted")
    parser.add_argument("--only", default="", help="part of the name of a file")
    parser.add_argument("--jobs", type=int, default=2, help="processes that run tests")
    parser.add_argument(
        "--looks",
        type=int,
        default=len(LOOKS_SECONDS),
        help=f"how many of {LOOKS_SECONDS} seconds at what survives in a fork",
    )
    parser.add_argument("--again", action="store_true", help="see again which tests run which lines")
    wanted = parser.parse_args()
    folder = ROOT / ".mutation"
    if wanted.again:
        for file in folder.glob("*.json*"):
            file.unlink()
    chosen = sample(wanted.rooms, wanted.only, mutants=wanted.mutants, seed=wanted.seed)
    with tempfile.TemporaryDirectory(prefix="outlive-mutation-") as place:
        Path(place).chmod(0o755)  # A server that is not run by root reads its programs here.
        copies = [Copy(ROOT, Path(place, str(number))) for number in range(wanted.jobs)]
        if new := [room for room in chosen if room not in Notes(folder).rooms]:
            # In a copy: a test that passes in the checkout only would notice every mutant.
            record(copies[0].folder, folder, test_folders(), rooms=new, jobs=wanted.jobs)
        notes = Notes(folder)
        known = look_in_forks(chosen, notes, copies[0], folder / "fates.jsonl")
        return report(chosen, notes, copies, LOOKS_SECONDS[: wanted.looks], known)


def sample(rooms: list[str], only: str, *, mutants: int, seed: int) -> dict[str, list[Mutant]]:
    """The mutants to try, by room. Each room has the same share: a large one would hide what the tests of a small one
    miss."""
    share, rng = -(-mutants // len(rooms)), random.Random(seed)
    chosen: dict[str, list[Mutant]] = {}
    for room in rooms:
        of_room = all_mutants(room, only)
        if find_etcd() is None and room == "_kernel/lease":
            say(f"the mutants of {ETCD} are left out: their tests need etcd, and there is none here")
            of_room = [it for it in of_room if not it.file.startswith(ETCD)]
        chosen[room] = rng.sample(of_room, min(share, len(of_room)))
    return chosen


def look_in_forks(chosen: dict[str, list[Mutant]], notes: Notes, copy: Copy, fates: Path) -> dict[str, Fate]:
    """What becomes of each of them in a fork, by its name in the notes; what was tried before is not tried again."""
    known = fates_in(fates)
    for room, mutants in chosen.items():
        trials = []
        for mutant in mutants:
            tests = [test for test in notes.tests_of(ROOT, mutant) if "::" in test]
            first = next(notes.looks(tests, [FORK_SECONDS]), [])
            if mutant.digest not in known and first and mutant.file.endswith(".py"):
                trials.append(trial_of(mutant, first, notes.seconds_of(first)))
        if trials:
            say(f"{len(trials)} mutants of {room} are tried in forks")
            copy.try_in_forks(trials, fates)
    return fates_in(fates)


def fates_in(file: Path) -> dict[str, Fate]:
    """What became of mutants in forks."""
    lines = file.read_text("utf-8").splitlines() if file.exists() else []
    return {it["mutant"]: Fate(it["fate"]) for it in map(json.loads, lines)}


def trial_of(mutant: Mutant, tests: list[str], seconds: float) -> dict[str, Any]:
    """A mutant as `warm.py` reads it."""
    place = Path(mutant.file).relative_to("src")
    return {
        "mutant": mutant.digest,
        "module": ".".join(place.with_suffix("").parts).removesuffix(".__init__"),
        "file": str(Path(mutant.file).relative_to(PACKAGE)),
        "text": mutant.text,
        "tests": tests,
        "seconds": seconds,
    }


def report(
    chosen: dict[str, list[Mutant]],
    notes: Notes,
    copies: list[Copy],
    seconds: tuple[float, ...],
    known: Mapping[str, Fate],
) -> int:
    """Say what becomes of each of them, and sum up. What no test noticed in a fork is tried, as many at a time as there
    are copies."""
    fates = {room: Counter[Fate]() for room in chosen}
    free: SimpleQueue[Copy] = SimpleQueue()
    for copy in copies:
        free.put(copy)

    def look(mutant: Mutant) -> tuple[Fate, int]:
        fate = known.get(mutant.digest, Fate.UNTRIED)
        if fate in NOTICED or not seconds:
            return fate, 0
        copy = free.get()
        try:
            return look_at(mutant, notes, copy, seconds)
        finally:
            free.put(copy)

    with ThreadPoolExecutor(len(copies)) as pool:
        for room, mutants in chosen.items():
            for number, (mutant, (fate, tried)) in enumerate(zip(mutants, pool.map(look, mutants), strict=True), 1):
                fates[room][fate] += 1
                say(f"{number:4} {fate.value:12} {tried:4} tests  {mutant}")
    say("")
    for room, of_room in fates.items():
        say(f"{room:16} {_noticed(of_room)} of {of_room.total()} noticed")
    noticed, tried = sum(map(_noticed, fates.values())), max(1, sum(each.total() for each in fates.values()))
    say(f"{noticed / tried:.0%} of {tried} noticed; the goal is {GOAL:.0%}")
    return 0 if noticed / tried >= GOAL else 1


def look_at(mutant: Mutant, notes: Notes, copy: Copy, seconds: tuple[float, ...]) -> tuple[Fate, int]:
    """What becomes of a mutant, and how many tests were tried."""
    fate, tried = Fate.UNSEEN, 0
    for tests in notes.looks(notes.tests_of(ROOT, mutant), seconds):
        fate, tried = copy.try_mutant(mutant, tests, seconds=notes.seconds_of(tests)), tried + len(tests)
        if fate is not Fate.SURVIVED:
            break
    return fate, tried


def _noticed(fates: Counter[Fate]) -> int:
    return sum(fates[fate] for fate in NOTICED)


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
