"""Plain words: words that hide who does what are counted, in the package, its proofs and the tests, and may only become
fewer. What users read has none."""

import ast
import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "outlive"
CONFORMANCE = ROOT / "conformance" / "src"
SOURCES = sorted(path for folder in (ROOT / "src", CONFORMANCE) for path in folder.rglob("*.py"))
WORDS = "whoever|somebody|nobody|anew|mend|mended|wish|wishes|herald|told"
COY = re.compile(rf"\b({WORDS})\b", re.IGNORECASE)
COY_MAX = 5
"""Lower it when you have made it fewer. Name the worker, the caller or the person instead."""
COY_TESTS_MAX = 1
"""The limit for tests: the name of a signal in a golden journal, which may not change."""
HALF = re.compile(
    r'^ *(?:async )?def (test_\w+)\([^"]*?\n +r?"""((?:And|Also|Of|What|The same|As)\b[^"\n]*)', re.MULTILINE
)
COMMENT = re.compile(r"# (.*)")
COMMENTS = re.compile(r"(?:(?:^ *|  )# .*\n)+", re.MULTILINE)
FRAGMENT = re.compile(r"(?:And|Also|Of|What|The same|As|Those|Who|Whose|That)\b")
NOT_A = re.compile(r"(?<!there )\b(?:is|are|was|were)\s+no\s+(?!longer|more|one\b)[\w…]+", re.IGNORECASE)
POINTERS = re.compile(
    r"\b(?:those\s+(?:that|who|whose|of\s+which)|the\s+ones?\s+(?:that|who)|of\s+(?:which|whom)\s+it)\b", re.IGNORECASE
)
COY_TEST = re.compile(rf"def (test_(?:\w+_)?(?:{WORDS}|hears)(?:_\w+)?)\(")


def test_the_package_hides_less_and_less_who_does_what() -> None:
    """In names, comments, docstrings and messages."""
    folders = (PACKAGE, CONFORMANCE, ROOT / "proof")
    files = [path for kind in ("*.py", "*.sql") for folder in folders for path in folder.rglob(kind)]
    found = Counter({path.relative_to(ROOT).as_posix(): len(COY.findall(path.read_text("utf-8"))) for path in files})

    most = ", ".join(f"{name} {count}" for name, count in found.most_common(10) if count)
    assert found.total() <= COY_MAX, (
        f"{found.total()} coy words, {COY_MAX} are allowed; name the worker, the caller or the person in {most}"
    )


def test_tests_hide_less_and_less_who_does_what() -> None:
    """They are read as often as the code."""
    files = [path for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)]
    found = Counter({path.relative_to(ROOT).as_posix(): len(COY.findall(path.read_text("utf-8"))) for path in files})

    most = ", ".join(f"{name} {count}" for name, count in found.most_common(10) if count)
    assert found.total() <= COY_TESTS_MAX, f"name the worker, the caller or the person in {most}"


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
    files = [*(ROOT / "tests").rglob("test_*.py"), *CONFORMANCE.rglob("*.py")]
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


def test_prose_of_the_package_is_in_whole_sentences() -> None:
    """The subject of a docstring or a comment is a noun: a fragment needs the code to be understood."""
    found = [
        f"{path.relative_to(ROOT).as_posix()}:{line}: {text.splitlines()[0]}"
        for path in SOURCES
        for line, text in prose_in(path.read_text("utf-8"))
        if FRAGMENT.match(text)
    ]

    assert not found, "begin with the noun that it is about:\n" + "\n".join(found)


def test_prose_of_the_package_says_is_not_a() -> None:
    """A sentence about a thing that *is no run* must be read twice; it *is not a run*."""
    found = [
        f"{path.relative_to(ROOT).as_posix()}:{line}: {' '.join(match.split())}"
        for path in SOURCES
        for line, text in prose_in(path.read_text("utf-8"))
        for match in NOT_A.findall(text)
    ]

    assert not found, "write `is not a`, or `there is no`:\n" + "\n".join(found)


def test_prose_of_the_package_repeats_the_noun() -> None:
    """A reader of *those that* and *the one that* has to look for the noun."""
    found = [
        f"{path.relative_to(ROOT).as_posix()}:{line}: {' '.join(match.split())}"
        for path in SOURCES
        for line, text in prose_in(path.read_text("utf-8"))
        for match in POINTERS.findall(text)
    ]

    assert not found, "repeat the noun, for example `the runs that`:\n" + "\n".join(found)


def test_pages_say_is_not_a_and_repeat_the_noun() -> None:
    """Decisions are history, and scenarios have the words of other systems."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    found = [
        f"{page.relative_to(ROOT).as_posix()}:{number}: {match}"
        for page in pages
        if page.parent.name != "decisions" and page.stem not in {"decisions", "scenarios"}
        for number, line in enumerate(page.read_text("utf-8").splitlines(), 1)
        for match in (*NOT_A.findall(line), *POINTERS.findall(line))
    ]

    assert not found, "write `is not a`, and repeat the noun:\n" + "\n".join(found)


def test_docstrings_of_tests_say_is_not_a_and_repeat_the_noun() -> None:
    """Docstrings of tests are read alone, in lists of what is promised."""
    found = [
        f"{path.relative_to(ROOT).as_posix()}:{line}: {' '.join(match.split())}"
        for path in (ROOT / "tests").rglob("*.py")
        if path != Path(__file__)
        for line, text in docstrings_in(path.read_text("utf-8"))
        for match in (*NOT_A.findall(text), *POINTERS.findall(text))
    ]

    assert not found, "write `is not a`, and repeat the noun:\n" + "\n".join(found)


def test_messages_say_is_not_a_and_repeat_the_noun() -> None:
    """A message of an error is read by a tired person without the code beside it."""
    found = [
        f"{path.relative_to(ROOT).as_posix()}:{line}: {' '.join(match.split())}"
        for path in [*SOURCES, *sorted((ROOT / "proof").rglob("*.py")), *sorted((ROOT / "examples").rglob("*.py"))]
        for line, text in messages_in(path.read_text("utf-8"))
        for match in (*NOT_A.findall(text), *POINTERS.findall(text))
    ]

    assert not found, "write `is not a`, and repeat the noun:\n" + "\n".join(found)


def test_fragments_and_pointers_are_found() -> None:
    """Docstrings of modules, classes, functions and fields are read, and comments too; messages are not."""
    text = (
        '"""What it is."""\n\nLIMIT = 3\n"""Of one run."""\n\n\n'
        'class A:\n    """Assets that are read."""\n\n    def b(self) -> str:\n        """As `a`."""\n'
        '        # It is no run, and\n        # those that are stay.\n        return "that is no id"\n'
    )
    fragments = [line for line, text in docstrings_in(text) if FRAGMENT.match(text)]
    prose = " ".join(text for _, text in prose_in(text))

    assert [1, 4, 11] == sorted(fragments)
    assert ["is no run"] == NOT_A.findall(prose)
    assert ["those that"] == POINTERS.findall(prose)
    assert not NOT_A.findall("There is no run, and it is no longer open.")
    assert ["that is no id"] == [message for _, message in messages_in(text)]


def test_values_in_a_message_are_kept_apart_from_its_words() -> None:
    """A noun that is put into a message counts as a noun."""
    messages = [message for _, message in messages_in('f"{a} is no {kind}" + "b"')]

    assert ["… is no …", "b"] == messages
    assert ["is no …"] == NOT_A.findall(messages[0])


def messages_in(source: str) -> Sequence[tuple[int, str]]:
    """The strings of a module that are not docstrings, each with its line; `…` stands for a value in a string."""
    return strings_in(source)[1]


def docstrings_in(source: str) -> Sequence[tuple[int, str]]:
    """The docstrings of modules, classes, functions and fields, each with its line."""
    return strings_in(source)[0]


@cache
def strings_in(source: str) -> tuple[Sequence[tuple[int, str]], Sequence[tuple[int, str]]]:
    """The docstrings of a module and its other strings."""
    docstrings: list[tuple[int, str]] = []
    messages: list[tuple[int, str]] = []
    taken: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(ast.Constant(str(text)) as stated):
                docstrings.append((node.lineno, text.strip()))
                taken.add(id(stated))
            case ast.JoinedStr():
                messages.append((node.lineno, "".join(map(_text_of, node.values))))
                taken.update(map(id, node.values))
            case ast.Constant(str(text)) if id(node) not in taken:
                messages.append((node.lineno, text))
    return docstrings, messages


def _text_of(part: ast.expr) -> str:
    if isinstance(part, ast.Constant):
        return part.value if isinstance(part.value, str) else ""
    return "…"


def prose_in(source: str) -> Sequence[tuple[int, str]]:
    """The docstrings and the comments of a module, each with its line; lines of one comment are one text."""
    comments = [
        (source.count("\n", 0, found.start()) + 1, " ".join(COMMENT.findall(found[0])))
        for found in COMMENTS.finditer(source)
    ]
    return [*docstrings_in(source), *comments]
