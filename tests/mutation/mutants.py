"""One-line defects: what a tired person could have written instead.

A mutant is a file with one change. In Python a comparison is flipped, a condition negated, `and` and `or` exchanged, a
number or a truth value changed, a statement deleted; in SQL a predicate is dropped. What only a reader sees (log lines,
assertions, types, docstrings, `del` of a name) is left alone, and so are the figures at the head of a module. Changes
that make no difference by their form alone are left out too (`_alike`); decision 0024 has the reasons.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

FLIPS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
DELETED = (ast.Expr, ast.AugAssign, ast.Raise, ast.Continue, ast.Break, ast.Delete)
SPOKEN = re.compile(r"^(await )?(log\.|assert_never\(|\.\.\.$|super\(\)\.__init__)")
CLOCKS = ("time", "_loop_time", "monotonic", "perf_counter")
"""Functions that read a clock which does not show a limit to the last digit."""
PREDICATE = re.compile(r"^\s*AND\s+(?P<what>.+?)\s*$")


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one file."""

    file: str
    """Relative to the root of the checkout."""
    line: int
    before: str
    after: str
    text: str
    """The whole file, changed."""
    above: str = ""
    """The line above, by which one of several equal ones is known; unlike its number it seldom changes."""

    @property
    def key(self) -> tuple[str, str, str, str]:
        """The key of this mutant in the list of mutants that no test can see."""
        return self.file, self.above, self.before, self.after

    @property
    def digest(self) -> str:
        """The name of this mutant in the notes about what became of it; another one as soon as its file is changed."""
        return sha256(f"{self.file}\n{self.text}".encode()).hexdigest()[:16]

    def __str__(self) -> str:
        return f"{self.file}:{self.line}\n    - {self.before}\n    + {self.after}"


def mutants_of(root: Path, file: str) -> list[Mutant]:
    """All mutants of a file, in order."""
    text = (root / file).read_text("utf-8")
    return list(_sql_mutants(file, text) if file.endswith(".sql") else _python_mutants(file, text))


def _sql_mutants(file: str, text: str) -> Iterator[Mutant]:
    lines = text.splitlines(keepends=True)
    for number, line in enumerate(lines, 1):
        found = PREDICATE.match(line)
        if found and found["what"].count("(") == found["what"].count(")") and " OR " not in found["what"]:
            # What it names stays named, or a server could not tell the types of its parameters.
            after = f"AND (({found['what']}) OR true)"
            changed = "".join([*lines[: number - 1], f"{after}\n", *lines[number:]])
            yield Mutant(file, number, line.strip(), after, changed, _above(lines, number))


def _python_mutants(file: str, text: str) -> Iterator[Mutant]:
    lines = text.splitlines(keepends=True)
    tree = ast.parse(text)
    alike = set(_alike(tree))
    for old, new in _changes(tree):
        if old in alike:
            continue
        assert isinstance(old, ast.expr | ast.stmt)
        assert old.end_lineno is not None
        assert old.end_col_offset is not None
        if old.end_lineno - old.lineno > 3:
            continue  # A person does not write that by mistake.
        before = ast.get_source_segment(text, old) or ""
        if SPOKEN.match(before):
            continue
        after = "pass" if new is None else f"({ast.unparse(new)})" if isinstance(old, ast.expr) else ast.unparse(new)
        head = lines[old.lineno - 1].encode()[: old.col_offset].decode()
        tail = lines[old.end_lineno - 1].encode()[old.end_col_offset :].decode()
        changed = "".join([*lines[: old.lineno - 1], head, after, tail, *lines[old.end_lineno :]])
        yield Mutant(file, old.lineno, " ".join(before.split()), after, changed, _above(lines, old.lineno))


def _above(lines: list[str], number: int) -> str:
    return lines[number - 2].strip() if number > 1 else ""


def _changes(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST | None]]:
    """Nodes, and what to write in their place; None to write nothing."""
    match node:
        case ast.Assert() | ast.AnnAssign(value=None) | ast.Import() | ast.ImportFrom():
            return
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return
        case ast.Expr(value=ast.Constant()):
            return
        case ast.Raise(exc=ast.Call(func=ast.Name(id="AssertionError"))):
            return
        case ast.Delete(targets=[*names]) if all(isinstance(it, ast.Name) for it in names):
            return  # It says that a name is not used.
        case ast.Compare(ops=[operator]):
            yield node, _with(node, ops=[FLIPS[type(operator)]()])
        case ast.BoolOp():
            yield node, _with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
        case ast.UnaryOp(op=ast.Not()):
            yield node, node.operand
        case ast.If() | ast.While() if not isinstance(node.test, ast.Compare | ast.BoolOp | ast.UnaryOp | ast.Constant):
            yield node.test, ast.UnaryOp(ast.Not(), node.test)
        case ast.Constant(value=bool(value)):
            yield node, ast.Constant(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield node, ast.Constant(value + 1)
        case ast.Assign(targets=[ast.Attribute()]):
            yield node, None
        case _:
            if isinstance(node, DELETED):
                yield node, None
    for child in _children(node):
        yield from _changes(child)


def _alike(tree: ast.AST) -> Iterator[ast.AST]:
    """Nodes of which a change means the same, whatever the program does."""
    read = {it.attr for it in ast.walk(tree) if isinstance(it, ast.Attribute) and isinstance(it.ctx, ast.Load)}
    for node in ast.walk(tree):
        match node:
            case ast.Compare(ops=[ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE()]):
                yield from [node] if any(map(_reads_clock, ast.walk(node))) else []
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)) if name.lstrip("_")[:1].islower():
                yield from (it for keyword in node.keywords if keyword.arg == "after" for it in _one_of(keyword.value))
            case ast.Assign(targets=[ast.Name(id="after")]):
                yield from _one_of(node.value)
            case ast.FunctionDef(name="close" | "aclose") | ast.AsyncFunctionDef(name="close" | "aclose"):
                yield from (it for it in ast.walk(node) if _is_lost(it, read))
            case _:
                pass


def _reads_clock(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call) or node.args:
        return False
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    return name in CLOCKS


def _one_of(value: ast.AST) -> Iterator[ast.AST]:
    """The number in -1, which says that nothing has been read yet: so does every other number below 0."""
    if isinstance(value, ast.UnaryOp) and ast.unparse(value) == "-1":
        yield value.operand


def _is_lost(node: ast.AST, read: set[str]) -> bool:
    """Whether it keeps something in a private field that nothing reads."""
    if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Attribute):
        return False
    name = node.targets[0].attr
    return name.startswith("_") and name not in read


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """What is inside, but for types, decorators and defaults, which say what is meant and not what is done."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield from node.body
        case ast.Module() | ast.ClassDef():
            # What is done at import: figures, which are tuned and not tested, and tables, which check themselves.
            yield from (it for it in node.body if isinstance(it, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef))
        case ast.AnnAssign():
            if node.value is not None:
                yield node.value
        case ast.JoinedStr():
            return  # A message.
        case ast.keyword(arg="strict"):
            return  # An assertion, of `zip`.
        case ast.Raise():
            return
        case _:
            yield from ast.iter_child_nodes(node)


def _with(node: ast.AST, **changes: object) -> ast.AST:
    changed = copy.copy(node)
    for name, value in changes.items():
        setattr(changed, name, value)
    return changed
