"""The pages of the documentation as the tests see them: blocks of code, headings and links."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
DOCS = ROOT / "docs"

_FENCE = re.compile(r"```(.*)")
_HEADING = re.compile(r"#{1,6} (.*)")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"`[^`]*`")


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block of a page."""

    info: str
    """What stands behind the three ticks that open it."""
    text: str
    line: int
    """The line of the page on which its text begins, from 1."""


def find_pages() -> list[Path]:
    """The README and every page of `docs`."""
    return [README, *sorted(DOCS.rglob("*.md"))]


def name_of(page: Path) -> str:
    """A page as people call it."""
    return (page.relative_to(ROOT) if page.is_relative_to(ROOT) else page).as_posix()


def blocks_of(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page, in order; a fence that is indented or left open is a mistake."""
    info: str | None = None
    text: list[str] = []
    for number, line in enumerate(page.read_text("utf-8").splitlines(), start=1):
        fence = _FENCE.fullmatch(line.strip())
        assert fence is None or line.startswith("```"), f"{name_of(page)}:{number}: a fence begins its line"
        if fence is None:
            text.append(line)
        elif info is None:
            info, text = fence[1].strip(), []
        else:
            yield Block(info, "".join(f"{it}\n" for it in text), number - len(text))
            info = None
    assert info is None, f"{name_of(page)}: a block of code is never closed"


def prose_of(page: Path) -> str:
    """The page without its fenced blocks."""
    is_prose = True
    kept = []
    for line in page.read_text("utf-8").splitlines():
        if line.startswith("```"):
            is_prose = not is_prose
        elif is_prose:
            kept.append(line)
    return "\n".join(kept)


def links_of(page: Path) -> list[str]:
    """Where the links of a page point."""
    return _LINK.findall(_CODE.sub("", prose_of(page)))


def anchors_of(page: Path) -> set[str]:
    """What a link may name behind the '#': the headings of a page, as the web sites that show it write them."""
    headings = (_HEADING.fullmatch(line) for line in prose_of(page).splitlines())
    return {re.sub(r"[^\w\- ]", "", heading[1].lower()).replace(" ", "-") for heading in headings if heading}


def section_of(page: Path, heading: str) -> str:
    """The text under a heading, up to the next one of its level or above; code and all."""
    lines = page.read_text("utf-8").splitlines()
    assert heading in lines, f"{name_of(page)} has no heading {heading!r}"
    level = len(heading) - len(heading.lstrip("#"))
    start = lines.index(heading) + 1
    for end, line in enumerate(lines[start:], start=start):
        if re.match(rf"#{{1,{level}}} ", line):
            return "\n".join(lines[start:end])
    return "\n".join(lines[start:])


def first_cells(text: str) -> list[str]:
    """The code in the first cell of each row of the tables in a text."""
    return re.findall(r"^\| `([^`]+)`", text, flags=re.MULTILINE)


def expect_same(listed: Iterable[str], wanted: Iterable[str], *, where: str) -> None:
    """Fail with what a list of the documentation lacks, and with what it has too many."""
    has, needs = list(listed), set(wanted)
    wrong = [f"add {name}" for name in sorted(needs - set(has))]
    wrong += [f"take {name} out" for name in sorted(set(has) - needs)]
    wrong += [f"list {name} once" for name in sorted({name for name in has if has.count(name) > 1})]
    assert not wrong, f"{where}: {', '.join(wrong)}"
