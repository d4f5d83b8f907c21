"""The guides are complete: every error, limit, counter and kind of event stands where it should."""

import dataclasses
import re
import typing
from functools import cache
from pathlib import Path

import pytest

import outlive
from outlive import errors
from outlive._kernel.journal.event import AnyEvent
from outlive.errors.known import ERRORS as KNOWN
from outlive.telemetry import Counters
from tests.docs.page import DOCS, ROOT, expect_same, find_pages, first_cells, name_of, section_of

ERRORS = DOCS / "guides" / "errors.md"
OPERATING = DOCS / "guides" / "operating.md"
FORMAT = DOCS / "internals" / "journal-format.md"
DECISIONS = DOCS / "decisions"
DECISION_LINES_MAX = 40
MAKE = re.compile(r"(?:`|^)make ([a-z0-9]+)", re.MULTILINE)
"""A target of make that a page names as code."""


def test_every_error_is_explained() -> None:
    """Each class of `outlive.errors` has a row: when it comes, and what to do; each code one behind its class."""
    rows = re.findall(r"^\| `(\w+)`(?:, `(\w+)`)? \|", ERRORS.read_text("utf-8"), flags=re.MULTILINE)
    below = {it.code: it for name, it in KNOWN.items() if name not in errors.__all__}

    where = "the table of docs/guides/errors.md"
    expect_same([name for name, code in rows if not code], errors.__all__, where=where)
    expect_same([code for _, code in rows if code], below, where=where)
    for name, code in rows:
        assert not code or issubclass(below[code], getattr(errors, name)), f"{code} is not a {name}"


def test_programs_have_few_errors_to_catch() -> None:
    """A code says which of the others it is, and no two reasons have the same one."""
    assert len(errors.__all__) <= 45
    assert len({it.code for it in KNOWN.values()}) == len(KNOWN)
    assert sorted(dir(errors)) == sorted(errors.__all__)


def test_every_limit_is_listed_with_its_value() -> None:
    """In the table of the operating guide, as the code has it."""
    rows = re.findall(r"^\| `(\w+_max)` \| ([\d,]+)", OPERATING.read_text("utf-8"), flags=re.MULTILINE)

    listed = {name: int(value.replace(",", "")) for name, value in rows}
    fields = dataclasses.fields(outlive.limits.Limits)
    assert listed == {field.name: field.default for field in fields if field.default is not dataclasses.MISSING}
    text = section_of(OPERATING, "## Limits")
    assert [] == [field.name for field in fields if not has_word(text, field.name)], "a default of each machine's own"


def test_every_counter_is_listed() -> None:
    """In the operating guide."""
    listed = first_cells(section_of(OPERATING, "## Counters"))

    counters = [field.name for field in dataclasses.fields(Counters) if field.name != "measures"]
    expect_same(listed, counters, where="docs/guides/operating.md, the table 'Counters'")


def test_every_kind_of_event_is_described() -> None:
    """In the page about the bytes of the journal, with its own fields."""
    described = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", FORMAT.read_text("utf-8"), flags=re.MULTILINE))
    kinds = typing.get_args(AnyEvent)

    page = "docs/internals/journal-format.md"
    expect_same(described, [kind.__name__ for kind in kinds], where=f"{page}, the tables of events")
    for kind in kinds:
        fields = set(kind.__struct_fields__) - {"at", "run"}
        named = re.findall(r"`(\w+)`", described[kind.__name__])
        expect_same(named, fields, where=f"{page}, the fields of {kind.__name__}")


PAGES_ABOUT_THE_INSIDE = sorted([*DECISIONS.glob("*.md"), *FORMAT.parent.glob("*.md"), *ROOT.glob("*.md")])


@pytest.mark.parametrize("page", PAGES_ABOUT_THE_INSIDE, ids=lambda it: it.stem)
def test_files_that_are_named_exist(page: Path) -> None:
    """A page about the inside names no file that has gone; a path may leave out the folders in front."""
    named = set(re.findall(r"`([\w./-]+\.(?:py|sql))`", page.read_text("utf-8")))

    gone = sorted(name for name in named if not any(file.endswith(f"/{name}") for file in files_of_ours()))
    assert not gone, f"{name_of(page)} names files that are not there: {', '.join(gone)}"


def test_targets_of_make_that_pages_name_exist() -> None:
    """A reader can type what a page says in code; decisions are history."""
    targets = set(re.findall(r"^([a-z0-9]+):", (ROOT / "Makefile").read_text("utf-8"), flags=re.MULTILINE))
    pages = [page for page in {*find_pages(), *ROOT.glob("*.md")} if page.parent != DECISIONS]
    named = {(name_of(page), it) for page in pages for it in MAKE.findall(page.read_text("utf-8"))}

    assert {"test", "site", "kill"} <= {target for _, target in named}
    assert [it for it in sorted(named) if it[1] not in targets] == []


@cache
def files_of_ours() -> list[str]:
    """What a page can name: read from the disk once for all pages."""
    folders = [ROOT / it for it in ("src/outlive", "conformance/src", "proof", "bench", "tests", "clients", "examples")]
    return [path.as_posix() for folder in folders for kind in ("py", "sql") for path in folder.rglob(f"*.{kind}")]


def test_every_decision_is_listed_in_order() -> None:
    """A record that is only found by its file name is not read."""
    listed = re.findall(
        r"^\| \[(\d+)\]\(decisions/(.*?)\) \|", (DOCS / "decisions.md").read_text("utf-8"), re.MULTILINE
    )

    assert [name for _, name in listed] == sorted(page.name for page in DECISIONS.glob("*.md"))
    assert [name for number, name in listed if not name.startswith(f"{number}-")] == []


@pytest.mark.parametrize("page", sorted(DECISIONS.glob("*.md")), ids=lambda page: page.stem)
def test_decision_is_short_and_complete(page: Path) -> None:
    """Status, context, decision, consequences, in less than a screen."""
    text = page.read_text("utf-8")

    assert re.findall(r"^## (.*)$", text, flags=re.MULTILINE) == ["Status", "Context", "Decision", "Consequences"]
    assert len(text.splitlines()) < DECISION_LINES_MAX


@pytest.mark.parametrize("page", sorted(DECISIONS.glob("*.md")), ids=lambda page: page.stem)
def test_decision_names_the_decision_that_overtook_it(page: Path) -> None:
    """If the status of a later decision names an earlier one, the status of the earlier one names the later one."""
    number = page.stem[:4]

    for other in re.findall(r"\b0\d{3}\b", section_of(page, "## Status")):
        [named] = DECISIONS.glob(f"{other}-*.md")
        status = section_of(named, "## Status")
        assert named == page or f"({page.name})" in status, f"the status of {named.name} does not link to {number}"


def has_word(text: str, word: str) -> bool:
    """Whether a text has a word."""
    return re.search(rf"\b{re.escape(word)}\b", text) is not None
