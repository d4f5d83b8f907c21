"""Writes the reference: a part of `make generate`."""

from __future__ import annotations

from tests.docs.page import DOCS
from tests.docs.reference import Reference


def main() -> None:
    """Write every page."""
    reference = Reference()
    for page in [*reference.pages, reference.index(), reference.words()]:
        path = DOCS / page.path
        path.parent.mkdir(exist_ok=True)
        path.write_text(page.shown(), "utf-8")


if __name__ == "__main__":
    main()
