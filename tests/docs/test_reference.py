"""The reference is what the code says, and has every public name."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Literal, TypedDict, Unpack

import pytest

import outlive
from tests.docs import public, source
from tests.docs.page import DOCS, expect_same, name_of
from tests.docs.reference import CONSTANTS, GUIDES, SECTIONS, WRITTEN, Heading, Reference

Growth = Literal["linear", "fixed"]
PAUSE_SECONDS = 1.5


@pytest.fixture(scope="module")
def reference() -> Reference:
    """All pages, as the code makes them now."""
    return Reference()


def test_the_pages_are_what_the_code_says(reference: Reference) -> None:
    """A signature or a docstring that changes changes its page, in the same commit."""
    pages = [*reference.pages, reference.index(), reference.words()]
    stale = [page.path for page in pages if (DOCS / page.path).read_text("utf-8") != page.shown()]

    assert not stale, f"docs/{stale[0]} is not up to date: run make generate"


def test_no_page_of_a_namespace_that_is_gone_is_left(reference: Reference) -> None:
    """A page that is written from the code goes with the code."""
    made = {page.path for page in [*reference.pages, reference.index(), reference.words()]}
    written = [path for path in DOCS.rglob("*.md") if path.read_text("utf-8").endswith(f"{WRITTEN}\n")]

    assert [name_of(path) for path in written if path.relative_to(DOCS).as_posix() not in made] == []


def test_every_public_name_has_a_heading(reference: Reference) -> None:
    """One, on the page of its namespace."""
    headings = [part.name for page in reference.pages for part in page.parts if isinstance(part, Heading)]
    wanted = {name for name, _ in public.public_names()} - {"outlive.Engine"}

    expect_same([name for name in headings if name in wanted], wanted, where="the pages of docs/reference")
    expect_same([it for names in SECTIONS.values() for it in names], outlive.__all__, where="SECTIONS")


def test_tables_of_the_reference_name_what_is_there(reference: Reference) -> None:
    """A guide of a name, what is said of a constant, and a member that is left out go with what they are about."""
    titles = {page.title for page in reference.pages} | {
        page.title.removeprefix("outlive.") for page in reference.pages
    }
    headings = {part.name for page in reference.pages for part in page.parts if isinstance(part, Heading)}
    classes = {it.__name__: it for it in reference.classes}
    gone = [name for name in (*GUIDES, *CONSTANTS) if name not in headings | titles | {"engine"}]
    gone += [
        f"{name}.{member}"
        for name, members in public.INSIDE.items()
        for member in members
        if name not in classes or not (hasattr(classes[name], member) or member in fields_of(classes[name]))
    ]

    assert gone == []


def fields_of(it: type) -> list[str]:
    """The names of the fields that a class explains."""
    return [field.name for field in source.fields_of(it)]


def test_every_argument_that_is_explained_is_one() -> None:
    """A name in the section Args of a docstring is a parameter, or a field of what gathers others."""
    wrong = []
    for name, it in public.public_names():
        if not inspect.isfunction(it) and not (inspect.isclass(it) and public.is_made(name)):
            continue
        members = [(name, it), *((f"{name}.{each}", found) for each, found in members_of(it))]
        for called, found in members:
            shown = signature_of(found)
            said = source.said_of(inspect.getdoc(found) or "")
            names = [each for names, _ in said.arguments for each in names.split(", ")]
            wrong += [f"{called}: {each}" for each in names if each not in shown]

    assert wrong == []


def members_of(it: Any) -> list[tuple[str, Any]]:
    """The public methods of a class."""
    found = public.members_of(it) if inspect.isclass(it) else ()
    return [(name, member) for name, member in found if not isinstance(member, property)]


def signature_of(it: Any) -> str:
    """How something is called, with the names of what it gathers."""
    gathered = " ".join(inspect.signature(it).parameters)
    return f"{source.constructor_shown(it, '') if inspect.isclass(it) else source.call_shown(it, '')} {gathered}"


# -- How a page is made ------------------------------------------------------------------------------------------


class Options(TypedDict, total=False):
    """What `begin` may be given besides."""

    tags: dict[str, str] | None


@dataclass(frozen=True, kw_only=True)
class Drawer:
    """A drawer."""

    width: int
    """In centimetres."""
    labels: tuple[str, ...] = ()
    pause: float = PAUSE_SECONDS
    """Before it
    closes."""

    async def open(self, how: Growth, loop: asyncio.AbstractEventLoop | None = None) -> Drawer:
        """Open it."""
        return self

    def contents(self) -> AsyncIterator[str]:
        """What is in it."""
        raise NotImplementedError


async def begin(name: str, *, seconds: float = PAUSE_SECONDS, _inside: int = 0, **options: Unpack[Options]) -> None:
    """Begin.

    It goes on by itself.

        await begin("tea")

    Args:
        name: of what
            begins: anything.
        seconds, options: how.

    Raises:
        ValueError, TypeError. LookupError: there is none,
        or two. OSError: it is
            full.
    """


def test_a_signature_is_that_of_the_source() -> None:
    """Without the modules of names and what begins with an underscore; texts, constants and what is gathered stand in
    place of their names."""
    assert source.call_shown(begin, "begin") == (
        "await begin(name: str, *, seconds: float = 1.5, tags: dict[str, str] | None = ...)"
    )
    assert source.call_shown(Drawer.open, "drawer.open", is_method=True) == (
        'await drawer.open(how: Literal["linear", "fixed"], loop: AbstractEventLoop | None = None) -> Drawer'
    )
    assert source.call_shown(Drawer.contents, "drawer.contents", is_method=True) == (
        "drawer.contents() -> AsyncIterator[str]"
    )
    assert source.constructor_shown(Drawer, "Drawer") == (
        "Drawer(*, width: int, labels: tuple[str, ...] = (), pause: float = 1.5)"
    )


def test_fields_are_explained_by_the_strings_below_them() -> None:
    """Those without one have none."""
    assert [(it.name, it.text) for it in source.fields_of(Drawer)] == [
        ("width", "In centimetres."),
        ("labels", ""),
        ("pause", "Before it closes."),
    ]


def test_a_docstring_has_prose_and_sections() -> None:
    """Errors may share a line, and stand in one paragraph."""
    said = source.said_of(inspect.getdoc(begin) or "")

    assert said.prose == 'Begin.\n\nIt goes on by itself.\n\n    await begin("tea")'
    assert said.arguments == [("name", "of what begins: anything."), ("seconds, options", "how.")]
    assert said.raises == [
        (["ValueError", "TypeError"], ""),
        (["LookupError"], "there is none, or two."),
        (["OSError"], "it is full."),
    ]
