"""Links between the pages lead somewhere, and every page can be reached."""

from collections.abc import Collection
from pathlib import Path

import pytest

from tests.docs.page import README, ROOT, anchors_of, find_pages, links_of, name_of

ELSEWHERE = ("https://", "http://", "mailto:")


@pytest.mark.parametrize("page", sorted({*find_pages(), *ROOT.glob("*.md")}), ids=name_of)
def test_links_resolve(page: Path) -> None:
    """A link names a file that exists and, behind the '#', one of its headings."""
    broken = [link for link in links_of(page) if not link.startswith(ELSEWHERE) and not is_good(page, link)]

    assert not broken


def test_every_page_is_reached_from_the_readme() -> None:
    """A page that no other page names is a page that no reader finds."""
    pages = find_pages()
    reached: set[Path] = set()
    todo = [README]
    while todo:
        page = todo.pop()
        if page not in reached:
            reached.add(page)
            todo += targets_of(page, pages)

    assert [name_of(page) for page in pages if page not in reached] == []


def is_good(page: Path, link: str) -> bool:
    """Whether a link leads to a file of this repository and to a heading that it has."""
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    if not target.exists() or not target.is_relative_to(ROOT):
        return False
    return not anchor or (target.suffix == ".md" and anchor in anchors_of(target))


def targets_of(page: Path, pages: Collection[Path]) -> list[Path]:
    """Those of the pages that a page links to."""
    paths = (link.partition("#")[0] for link in links_of(page) if not link.startswith(ELSEWHERE))
    targets = ((page.parent / path).resolve() for path in paths if path)
    return [target for target in targets if target in pages]


def test_every_page_has_a_place_in_the_site() -> None:
    """In the navigation of `site/mkdocs.yml`, whose build is strict; internals and decisions list themselves."""
    navigation = (ROOT / "site" / "mkdocs.yml").read_text("utf-8")
    pages = [page.relative_to(ROOT / "docs").as_posix() for page in find_pages() if page.is_relative_to(ROOT / "docs")]

    listed = [page for page in pages if not page.startswith(("internals/", "decisions/"))]
    assert [page for page in listed if f" {page}\n" not in navigation] == []
