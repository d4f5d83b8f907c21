"""A constant is defined once: two modules that each define it drift apart, or a reader thinks that they differ.

Two constants are the same if their name and their value are. A limit or a span of time belongs to its module: other
modules may have the same one by chance.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "src" / "outlive"
CHOSEN = ("_MAX", "_SECONDS", "_AT_ONCE", "_BYTES", "PAGE")
"""How the names of limits and of spans end."""

ALLOWED = {
    "DEFAULT": "the queue that people see for runs without one, and the model of a flow that names none",
    "EPOCH": "`_cel` imports nothing of ours",
    "FORMAT": "the formats of a row, of a history and of a checkpoint, each with a future of its own",
    "FUNCTIONS": "each module of functions has its own table",
    "MICROSECONDS": "`telemetry` imports nothing of ours",
    "MIGRATIONS": "the folder beside the module: each store has its own",
    "NONE": "the help of a command imports no settings, so that it is quick",
    "PREFIX": "the tokens of runs and the leases of tasks; no feature imports the other",
    "READERS": "each has its own readers",
    "ROUND": "blobs and cells are collected by two services, each in its own time",
    "SQL": "the folder beside the module: each store has its own",
    "STEPS_PER_LOOK": "the transactions of two stores, of which neither imports the other",
    "VERSION": "the formats of an encrypted value and of the protocol of remote workers",
    "WORD": "the queries of two stores, of which neither imports the other",
}
"""Constants that are defined more than once, each with the reason."""


def test_a_constant_is_defined_once() -> None:
    """A constant with the same name and the same value stands in one module, and others import it."""
    found = defaultdict[tuple[str, str], list[str]](list)
    for path in sorted(PACKAGE.rglob("*.py")):
        for name, value in _constants(ast.parse(path.read_text("utf-8"))):
            found[name, value].append(path.relative_to(PACKAGE).as_posix())
    twice = {name: files for (name, _), files in found.items() if len(files) > 1}

    assert {name: files for name, files in twice.items() if name not in ALLOWED} == {}
    assert ALLOWED.keys() - twice.keys() == set()


def _constants(module: ast.Module) -> Iterator[tuple[str, str]]:
    for each in module.body:
        match each:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ) if name.isupper() and len(name) > 1 and not name.endswith(CHOSEN):
                yield name.lstrip("_"), ast.unparse(value)
