"""A thing has one class: two with the same fields are one thing that is converted for nothing, or have a reason."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2] / "src"
PACKAGE = ROOT / "outlive"
FIELDS_MIN = 3
REASONS = {
    ("ApprovalsPage", "BatchesPage", "BulkPageView", "RunsPage"): "pages of different things, each with a schema",
    ("CancelRequested", "RunParked"): "facts of a journal differ by their classes",
    ("Message", "Part"): "a message that was read, and one whose data is still bytes",
    ("PlaceOptions", "Placed"): "keywords of Python, and a part of the body of a request",
    ("Problem", "ProblemView"): "the way to a fault is a tuple in Python and dotted text for other languages",
    ("PromiseMade", "RunPublished", "StateLeft"): "facts of a journal differ by their classes",
    ("QueueLimits", "QueueLimits"): "what a cell has, with seconds in its rates, and what people see",
    ("RateTier", "SetTier"): "what people see, with a timedelta, and a request, with any form of a span",
    (
        "RunsCountQuery",
        "RunsFollowQuery",
    ): "limits that mean other things: up to where to count, and how many runs to follow",
    ("Start", "StartOptions"): "the body of a request, and keywords of Python",
}
"""Classes with the same fields that are two things, with the reason."""


class Module:
    """The classes of a module, and where the names come from that it imports."""

    def __init__(self, text: str) -> None:
        tree = ast.parse(text)
        self.classes = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
        self.imported = {
            each.asname or each.name: (node.module or "", each.name)
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for each in node.names
        }


def own_fields(node: ast.ClassDef) -> frozenset[str]:
    """The fields that a class itself declares."""
    return frozenset(
        each.target.id
        for each in node.body
        if isinstance(each, ast.AnnAssign)
        and isinstance(each.target, ast.Name)
        and "ClassVar" not in ast.unparse(each.annotation)
    )


def bases_of(modules: Mapping[str, Module], name: str, node: ast.ClassDef) -> list[tuple[str, ast.ClassDef]]:
    """The classes of the package that a class inherits from, each with its module."""
    found = []
    for base in node.bases:
        called = ast.unparse(base.value if isinstance(base, ast.Subscript) else base)
        where, original = modules[name].imported.get(called, (name, called))
        if where in modules and original in modules[where].classes:
            found.append((where, modules[where].classes[original]))
    return found


def fields_of(modules: Mapping[str, Module], name: str, node: ast.ClassDef) -> frozenset[str]:
    """The fields of a class, also its inherited fields."""
    return own_fields(node).union(*(fields_of(modules, *base) for base in bases_of(modules, name, node)))


def same_in(texts: Mapping[str, str]) -> set[tuple[str, ...]]:
    """The names of classes that have the same fields, in these modules. A class that adds no field to what it inherits
    is a kind of that."""
    modules = {name: Module(text) for name, text in texts.items()}
    found: dict[frozenset[str], list[str]] = defaultdict(list)
    for name, module in modules.items():
        for node in module.classes.values():
            fields = fields_of(modules, name, node)
            inherited = [fields_of(modules, *base) for base in bases_of(modules, name, node)]
            if len(fields) >= FIELDS_MIN and fields not in inherited:
                found[fields].append(node.name)
    return {tuple(sorted(names)) for names in found.values() if len(names) > 1}


def modules_of(folder: Path) -> dict[str, str]:
    """The text of each module in a folder, by its name."""
    found = {}
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path.read_text("utf-8")
    return found


def test_classes_with_the_same_fields_have_a_reason() -> None:
    """Such a pair is merged, or the table says why it is two things."""
    assert same_in(modules_of(PACKAGE)) == {tuple(sorted(names)) for names in REASONS}


def test_order_and_types_do_not_make_two_things_of_one() -> None:
    """The names of the fields tell, and classes of one or two fields are alike by chance."""
    first = "class A(Struct):\n    a: int\n    b: int\n    c: int"
    same = "class B(Struct):\n    b: int\n    a: str\n    c: int = 0"

    assert same_in({"a": first, "b": same}) == {("A", "B")}
    assert same_in({"a": first, "b": same.replace("c: int", "d: int")}) == set()
    assert same_in({"a": "class A:\n    a: int", "b": "class B:\n    a: int"}) == set()


def test_inherited_fields_count() -> None:
    """A class has the fields of its bases too, from whichever module they come; one that adds none is a kind of its
    base."""
    base = "class Base(Struct):\n    a: int\n    b: int"
    first = "from base import Base as Ground\nclass A(Ground, frozen=True):\n    c: int"
    same = "class B(Struct, Generic[T]):\n    a: int\n    b: int\n    c: int"

    assert same_in({"base": base, "a": first, "b": same}) == {("A", "B")}
    assert same_in({"base": base, "a": first, "b": "class B:\n    c: int\n    d: int\n    e: int"}) == set()
    assert same_in({"b": f"{same}\nclass Kind(B[int]):\n    pass"}) == set()
