"""Plain words: words that hide who does what are counted, in the package, its proofs and the tests, and may only become
fewer. What users read has none."""

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "outlive"
WORDS = "whoever|somebody|nobody|anew|mend|mended|wish|wishes|herald|told"
COY = re.compile(rf"\b({WORDS})\b", re.IGNORECASE)
COY_MAX = 5
"""Lower it when you have made it fewer. Name the worker, the caller or the person instead."""
COY_TESTS_MAX = 689
"""The same for docstrings and comments of tests."""
HALF = re.compile(
    r'^ *(?:async )?def (test_\w+)\([^"]*?\n +r?"""((?:And|Also|Of|What|The same|As)\b[^"\n]*)', re.MULTILINE
)
COY_TEST = re.compile(rf"def (test_(?:\w+_)?(?:{WORDS}|hears)(?:_\w+)?)\(")


def test_the_package_hides_less_and_less_who_does_what() -> None:
    """In names, comments, docstrings and messages."""
    files = [path for kind in ("*.py", "*.sql") for path in (*PACKAGE.rglob(kind), *(ROOT / "proof").rglob(kind))]
    found = Counter({path.relative_to(ROOT).as_posix(): len(COY.findall(path.read_text("utf-8"))) for path in files})

    most = ", ".join(f"{name} {count}" for name, count in found.most_common(10) if count)
    assert found.total() <= COY_MAX, (
        f"{found.total()} coy words, {COY_MAX} are allowed; name the worker, the caller or the person in {most}"
    )


def test_tests_hide_less_and_less_who_does_what() -> None:
    """They are read as often as the code."""
    files = [path for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)]
    found = Counter({path.relative_to(ROOT).as_posix(): len(COY.findall(path.read_text("utf-8"))) for path in files})

    assert found.total() <= COY_TESTS_MAX, f"{found.total()} coy words, {COY_TESTS_MAX} are allowed"


def test_what_users_read_says_who_does_what() -> None:
    """Decisions are history, and keep their words."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    files = [page for page in pages if page.parent.name != "decisions"] + list((ROOT / "examples").rglob("*.py"))
    found = [
        f"{path.relative_to(ROOT).as_posix()}:{number}: {line.strip()}"
        for path in files
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if COY.search(line)
    ]

    assert not found, "name the worker, the caller or the person:\n" + "\n".join(found)


def test_names_of_tests_say_who_does_what() -> None:
    """A test is named after what happens to whom."""
    files = [*(ROOT / "tests").rglob("test_*.py"), *(PACKAGE / "testing" / "conformance").glob("*.py")]
    found = [
        f"{path.relative_to(ROOT).as_posix()}: {name}"
        for path in files
        for name in COY_TEST.findall(path.read_text("utf-8"))
    ]

    assert not found, "name the worker, the caller or the person, or what is raised:\n" + "\n".join(found)


def test_docstrings_of_tests_are_whole_sentences() -> None:
    """A docstring of a test that begins with And, Also, Of, What, The same or As cannot be read alone."""
    found = [
        f"{path.relative_to(ROOT).as_posix()}: {name}: {line}"
        for path in (ROOT / "tests").rglob("*.py")
        for name, line in HALF.findall(path.read_text("utf-8"))
    ]

    assert not found, "begin with who or what the test is about:\n" + "\n".join(found)


def test_half_a_sentence_is_found() -> None:
    """A docstring that continues the one before is found, and a whole sentence is not."""
    text = (
        'def test_a(\n    b: int,\n) -> None:\n    """And b."""\n\n'
        '    async def test_b() -> None:\n        """As a."""\n\n'
        'def test_c() -> None:\n    """Assets are read."""\n\n'
        'def test_d() -> None:\n    """Runs end. And wait."""\n'
    )

    assert [("test_a", "And b."), ("test_b", "As a.")] == HALF.findall(text)
