"""A thing has one class: two with the same fields are one thing that is converted for nothing, or have a reason."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "src" / "outlive"
FIELDS_MIN = 3
REASONS = {
    ("ApprovalsPage", "BatchesPage", "BulkPageView", "RunsPage"): "pages of different things, each with a schema",
    ("DetachedEnded", "Ended"): "a fact of a journal, which stays as it is, and a message in the inbox",
    ("Message", "Part"): "a message that was read, and one whose data is still bytes",
    ("NamedStart", "StartRun"): "what a tuple of Python says, and the body of a request",
    ("PlaceOptions", "Placed"): "keywords of Python, and a part of the body of a request",
    ("Problem", "ProblemView"): "the way to a fault is a tuple in Python and dotted text for other languages",
    ("PromiseMade", "RunPublished", "StateLeft"): "facts of a journal differ by their classes",
    ("StartOptions", "Start"): "keywords of Python, and the body of a request",
}
"""Classes with the same fields that are two things, with the reason."""


def fields_of(node: ast.ClassDef) -> frozenset[str]:
    """The fields that a class itself declares."""
    return frozenset(
        each.target.id
        for each in node.body
        if isinstance(each, ast.AnnAssign)
        and isinstance(each.target, ast.Name)
        and "ClassVar" not in ast.unparse(each.annotation)
    )


def same_in(texts: Iterator[str]) -> set[tuple[str, ...]]:
    """The names of classes that have the same fields, in these modules."""
    found: dict[frozenset[str], list[str]] = defaultdict(list)
    for text in texts:
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef) and len(fields := fields_of(node)) >= FIELDS_MIN:
                found[fields].append(node.name)
    return {tuple(sorted(names)) for names in found.values() if len(names) > 1}


def test_classes_with_the_same_fields_have_a_reason() -> None:
    """Such a pair is merged, or the table says why it is two things."""
    found = same_in(path.read_text("utf-8") for path in sorted(PACKAGE.rglob("*.py")))

    assert found == {tuple(sorted(names)) for names in REASONS}


def test_order_and_types_do_not_make_two_things_of_one() -> None:
    """The names of the fields tell, and classes of one or two fields are alike by chance."""
    first = "class A(Struct):\n    a: int\n    b: int\n    c: int"
    same = "class B(Struct):\n    b: int\n    a: str\n    c: int = 0"

    assert same_in(iter([first, same])) == {("A", "B")}
    assert same_in(iter([first, same.replace("c: int", "d: int")])) == set()
    assert same_in(iter(["class A:\n    a: int", "class B:\n    a: int"])) == set()
