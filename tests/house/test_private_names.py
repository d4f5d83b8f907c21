"""Tests use what a room promises: how often they reach into private names is counted, and may only fall.

What a test needs of the parts of an engine that runs, it asks for in `tests/engine/inside.py`, the one file that knows
how they are put together.
"""

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOOR = "engine/inside.py"
REACHES_MAX = 77
"""Lower it when you have made it fewer."""

REACH = re.compile(r"\.(_[a-z]\w*)")
IMPORT = re.compile(r"^\s*from (?:outlive|tests|proof)[\w.]* import (.*)$", re.MULTILINE)
OWN = re.compile(r"(?:(?:self|cls)\.|def |class )(_[A-Za-z]\w*)")
NOT_REACHED = ("self", "cls", "super()", "outlive", "os", "asyncio", "sys")


def reaches_in(text: str) -> int:
    """How often a file names something private that it has not defined itself."""
    found = [
        it[1] for it in REACH.finditer(text) if not text[max(0, it.start() - 8) : it.start()].endswith(NOT_REACHED)
    ]
    imported = [name for names in IMPORT.findall(text) for name in re.findall(r"\b_[A-Za-z]\w*", names)]
    own = set(OWN.findall(text)) if found else set()
    return sum(name not in own for name in found) + len(imported)


def test_tests_reach_into_private_names_less_and_less() -> None:
    """Whoever changes how a room works must not have to change the tests of another."""
    tests = ROOT / "tests"
    files = {path.relative_to(tests).as_posix(): path for path in tests.rglob("*.py")}
    counts = Counter({name: reaches_in(path.read_text("utf-8")) for name, path in files.items() if name != DOOR})

    most = ", ".join(f"{name} {count}" for name, count in counts.most_common(10))
    assert counts.total() <= REACHES_MAX, f"{counts.total()} reaches into private names, most in {most}"


def test_only_what_is_private_elsewhere_counts() -> None:
    """Not one's own names, not modules of ours, and not those of the standard library."""
    text = "engine._store\nworkers[0]._lease\nf()._task\nfrom outlive.x import _y, z\nfrom tests.a import b, _c"
    own = "self._a = 1\nself.b._a\nsuper()._b()\nimport outlive._store.x\nos._exit(1)\ndef _d(): x._d()"

    assert reaches_in(text) == 5
    assert reaches_in(own) == 0
