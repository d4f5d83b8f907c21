"""Finds in the source of workflows what a replay cannot repeat: the time, chance, input and output, threads, sets.

Nothing is imported or run: a file is read, its workflows are found by their decorator, and each is looked at together
with the plain functions of the same file that it calls. A step may do anything, so no step is looked at. What is found
breaks only when a run is replayed, which may be weeks later; so it is said before.

`# outlive: ignore` at the end of a line says that the line is meant.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

IGNORE = "# outlive: ignore"
TIME = "the time of the machine: use outlive.now(), which a replay repeats"
CHANCE = "another value at every replay: use outlive.random() or outlive.uuid4()"
OUTSIDE = "the world outside: do this in a step, whose result is in the journal"
THREAD = "a thread or a process of its own: do this in a step"
SLEEP = "it blocks every run of the worker: use `await asyncio.sleep(...)`, which is durable"
HASH = "another number in every process: use hashlib, or a key of your own"
SET = "a set has no order that a replay repeats: walk through sorted(...)"
NOT_AWAITED = "it is not awaited, so it is never called: write `await {name}(...)`"

_CALLS: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "datetime.datetime.now",
            "datetime.datetime.utcnow",
            "datetime.datetime.today",
            "datetime.date.today",
            "time.time",
            "time.time_ns",
            "time.monotonic",
            "time.monotonic_ns",
            "time.perf_counter",
            "time.perf_counter_ns",
            "time.localtime",
            "time.gmtime",
            "time.ctime",
            "time.strftime",
        ),
        TIME,
    ),
    **dict.fromkeys(("uuid.uuid1", "uuid.uuid4", "os.urandom"), CHANCE),
    **dict.fromkeys(("open", "input", "os.getenv", "os.system", "os.popen", "asyncio.open_connection"), OUTSIDE),
    **dict.fromkeys(("asyncio.create_subprocess_exec", "asyncio.create_subprocess_shell"), OUTSIDE),
    **dict.fromkeys(("asyncio.to_thread", "os.fork"), THREAD),
    **dict.fromkeys(("os.listdir", "os.scandir", "os.walk", "os.stat", "os.getcwd", "os.getpid"), OUTSIDE),
    **dict.fromkeys(("hash", "id"), HASH),
    "time.sleep": SLEEP,
}
_MODULES: Mapping[str, str] = {
    "random": CHANCE,
    "secrets": CHANCE,
    "requests": OUTSIDE,
    "httpx": OUTSIDE,
    "aiohttp": OUTSIDE,
    "urllib.request": OUTSIDE,
    "socket": OUTSIDE,
    "subprocess": OUTSIDE,
    "sqlite3": OUTSIDE,
    "glob": OUTSIDE,
    "shutil": OUTSIDE,
    "os.path": OUTSIDE,
    "threading": THREAD,
    "multiprocessing": THREAD,
    "concurrent.futures": THREAD,
}
"""Every call of something in these modules."""
_PURE = frozenset(
    {f"os.path.{name}" for name in ("basename", "commonpath", "dirname", "join", "normpath", "split", "splitext")}
)
"""Functions of these modules that look at text only."""
_FILE_METHODS = frozenset({"read_text", "read_bytes", "write_text", "write_bytes", "iterdir", "rglob"})
_SETS = ("set", "frozenset")
_OF_SETS = frozenset({"copy", "difference", "intersection", "symmetric_difference", "union"})
"""Methods of a set that give a set."""
_IN_ORDER = frozenset({"list", "tuple", "enumerate", "iter", "zip", "map", "filter", "outlive.map", "itertools.chain"})
"""Functions that take the elements of their arguments one after the other."""


class CodeFinding(NamedTuple):
    """A line of a workflow that a replay cannot repeat."""

    file: str
    line: int
    column: int
    workflow: str
    what: str
    """The code that was found: `datetime.now()`."""
    remedy: str
    """Why that is wrong, and what to write instead."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: workflow {self.workflow}: {self.what}: {self.remedy}"


def check_source(text: str, *, file: str = "<text>") -> list[CodeFinding]:
    """The calls in the workflows of a source text that a replay cannot repeat, in the order of the lines.

    Raises:
        SyntaxError: it is not Python.
    """
    tree = ast.parse(text, filename=file)
    module = _Module(tree)
    lines = text.splitlines()
    found = {
        (it.line, it.column, it.what): it
        for workflow in module.workflows
        for it in _Look(module, file, workflow.name).at(workflow)
        if not lines[it.line - 1].rstrip().endswith(IGNORE)
    }
    return [found[place] for place in sorted(found)]


def check_file(file: Path) -> list[CodeFinding]:
    """The calls in the workflows of a file that a replay cannot repeat.

    Raises:
        SyntaxError: it is not Python. OSError: it cannot be read.
    """
    return check_source(file.read_text(encoding="utf-8"), file=str(file))


def check_running(file: str) -> list[CodeFinding]:
    """The calls in the workflows of running code that a replay cannot repeat: it may have no file, and its file may
    have changed."""
    try:
        return check_file(Path(file))
    except (OSError, ValueError, SyntaxError):
        return []


FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


class _Module:
    """The meanings of the names in a file."""

    def __init__(self, tree: ast.Module) -> None:
        self._names: dict[str, str] = {}
        """Imported names, each with its whole name: `now` of `from outlive import now` is `outlive.now`."""
        self.functions: dict[str, FunctionNode] = {}
        self.workflows: list[FunctionNode] = []
        self.durable: set[str] = set()
        """Names of steps and workflows."""
        for node in ast.walk(tree):
            self._import(node)
        self._machines = {
            target.id
            for node in tree.body
            if self._is_machine(node)
            for target in ast.walk(node)
            if isinstance(target, ast.Name) and isinstance(target.ctx, ast.Store)
        }
        """Names of machines: their routers are called again by a replay, as workflows are."""
        for node in tree.body:
            if isinstance(node, FunctionNode):
                self._define(node)

    def _import(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                whole = alias.name if alias.asname else alias.name.partition(".")[0]
                self._names[alias.asname or whole] = whole
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                self._names[alias.asname or alias.name] = f"{node.module}.{alias.name}"

    def _is_machine(self, node: ast.stmt) -> bool:
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        return isinstance(value, ast.Call) and self.name_of(value.func) == "outlive.Machine"

    def _define(self, node: FunctionNode) -> None:
        marks = {self.name_of(it.func if isinstance(it, ast.Call) else it) for it in node.decorator_list}
        if marks & {"outlive.workflow", "outlive.step", "outlive.remote_step"}:
            self.durable.add(node.name)
        if "outlive.workflow" in marks or marks & {f"{machine}.router" for machine in self._machines}:
            self.workflows.append(node)
        elif not marks:
            self.functions[node.name] = node

    def name_of(self, node: ast.expr) -> str:
        """The whole name of what an expression names: `datetime.datetime.now`; empty if it names nothing."""
        if isinstance(node, ast.Name):
            return self._names.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            owner = self.name_of(node.value)
            return owner and f"{owner}.{node.attr}"
        return ""


class _Look:
    """Looks at one workflow, and at the plain functions that it calls."""

    def __init__(self, module: _Module, file: str, workflow: str) -> None:
        self._module, self._file, self._workflow = module, file, workflow
        self._seen: set[str] = set()

    def at(self, function: FunctionNode) -> Iterator[CodeFinding]:
        """The calls in a function, and in the functions that it calls, that a replay cannot repeat."""
        self._seen.add(function.name)
        sets = {target.id for target in _names_of_sets(function)}
        for node in _own_nodes(function):
            yield from self._at_node(node, sets)
            called = self._module.functions.get(_called(node))
            if called is not None and called.name not in self._seen:
                yield from self.at(called)

    def _at_node(self, node: ast.AST, sets: set[str]) -> Iterator[CodeFinding]:
        if isinstance(node, ast.Call):
            yield from self._at_call(node, sets)
        elif isinstance(node, ast.Starred) and isinstance(node.ctx, ast.Load) and _is_set(node.value, sets):
            yield self._finding(node, ast.unparse(node), SET)
        elif isinstance(node, ast.Attribute | ast.Subscript) and self._module.name_of(_base(node)) == "os.environ":
            yield self._finding(node, "os.environ", OUTSIDE)
        elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension) and _is_set(node.iter, sets):
            yield self._finding(node.iter, ast.unparse(node.iter), SET)
        elif isinstance(node, ast.Expr) and (name := _called(node.value)) in self._module.durable:
            yield self._finding(node, f"{name}(...)", NOT_AWAITED.format(name=name))

    def _at_call(self, node: ast.Call, sets: set[str]) -> Iterator[CodeFinding]:
        name = self._module.name_of(node.func)
        remedy = "" if name in self._module.functions or name in _PURE else _remedy_for(name)
        if not remedy and _takes_order(name, node, sets):
            yield self._finding(node, ast.unparse(node), SET)
        if not remedy and isinstance(node.func, ast.Attribute) and node.func.attr in _FILE_METHODS:
            remedy = OUTSIDE
        if not remedy and isinstance(node.func, ast.Attribute) and node.func.attr == "run_in_executor":
            remedy = THREAD
        if remedy:
            yield self._finding(node, f"{ast.unparse(node.func)}()", remedy)

    def _finding(self, node: ast.expr | ast.stmt, what: str, remedy: str) -> CodeFinding:
        return CodeFinding(self._file, node.lineno, node.col_offset + 1, self._workflow, what, remedy)


def _own_nodes(function: FunctionNode) -> Iterator[ast.AST]:
    """Everything in a function, also in functions that it defines: they run as part of it."""
    for statement in function.body:
        yield from ast.walk(statement)


def _called(node: ast.AST) -> str:
    """The name of the function that is called by its plain name; empty if none is."""
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


def _base(node: ast.Attribute | ast.Subscript) -> ast.expr:
    return node if isinstance(node, ast.Attribute) else node.value


def _is_set(node: ast.expr, sets: Iterable[str]) -> bool:
    if isinstance(node, ast.Set):
        return not all(_is_task(element) for element in node.elts)
    if isinstance(node, ast.SetComp):
        return not _is_task(node.elt)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr | ast.BitAnd | ast.BitXor | ast.Sub):
        return _is_set(node.left, sets) or _is_set(node.right, sets)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _OF_SETS:
        return _is_set(node.func.value, sets)
    if _called(node) in _SETS:
        return True
    return isinstance(node, ast.Name) and node.id in sets


def _remedy_for(name: str) -> str:
    """The remedy for a call by its whole name; empty if it is repeated."""
    return _CALLS.get(name) or next((why for module, why in _MODULES.items() if name.startswith(f"{module}.")), "")


def _takes_order(name: str, node: ast.Call, sets: set[str]) -> bool:
    """Whether a call takes the elements of a set one after the other: `list({1, 2})`, `names.pop()`."""
    method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    if name in _IN_ORDER or method == "join":
        return any(_is_set(each, sets) for each in node.args)
    return method == "pop" and not node.args and isinstance(node.func, ast.Attribute) and _is_set(node.func.value, sets)


def _is_task(node: ast.expr) -> bool:
    """Whether it is a task: in a workflow, sets of tasks have the same order at every replay."""
    return isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("create_task", "ensure_future"))


def _names_of_sets(function: FunctionNode) -> Iterator[ast.Name]:
    """Names that are given a set, and nothing else."""
    given: dict[str, list[ast.expr]] = {}
    targets: dict[str, ast.Name] = {}
    for node in _own_nodes(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                for each in ast.walk(target):
                    if isinstance(each, ast.Name):
                        # A name beside others gets a part of the value, which may be anything.
                        given.setdefault(each.id, []).append(node.value if each is target else ast.Constant(None))
                        targets[each.id] = each
    for argument in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs):
        if argument.annotation is not None and _is_type_of_sets(argument.annotation):
            given.setdefault(argument.arg, []).append(ast.Call(ast.Name("set"), [], []))
            targets.setdefault(argument.arg, ast.Name(argument.arg))
    for name, values in given.items():
        if all(_is_set(value, ()) for value in values):
            yield targets[name]


def _is_type_of_sets(annotation: ast.expr) -> bool:
    """Whether an annotation is `set[...]`, and not of tasks."""
    text = ast.unparse(annotation)
    return text.partition("[")[0] in _SETS and "Task" not in text and "Future" not in text
