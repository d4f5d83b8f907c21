"""The style rules a machine can see, as a test over `src/outlive`, `conformance` and `proof`.

A rule is a function that finds breaches; its docstring is the advice printed with each of them. Exceptions
stand in `ALLOWED` with their reason. They are a ratchet: an exception that is no longer needed fails the test
until it is taken out. No length is a breach: a class has one subject, and the largest are only shown.
"""

import ast
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "outlive"
CONFORMANCE = ROOT / "conformance" / "src" / "outlive_conformance"
PROOF = ROOT / "proof"

# {(rule, file, what): reason}, as in ("injected", "_runtime/x.py", "threading.Thread"): "why it must"
ALLOWED: dict[tuple[str, str, str], str] = {
    (
        "injected",
        "_kernel/define/in_run.py",
        "datetime.datetime.now",
    ): "outside a run outlive.now() is the clock's time",
    ("injected", "_kernel/define/in_run.py", "random.random"): "outside a run outlive.random() is chance",
    ("injected", "_kernel/define/in_run.py", "uuid.uuid4"): "outside a run outlive.uuid4() is uuid4()",
    ("injected", "_kernel/define/in_run.py", "asyncio.sleep"): "in a run this is the durable sleep",
    ("injected", "_features/approvals/in_workflow.py", "asyncio.sleep"): "in a run this is the durable sleep",
    ("injected", "_features/batches/workflows.py", "asyncio.sleep"): "in a run this is the durable sleep",
    ("injected", "_features/tasks/remote_step.py", "asyncio.sleep"): "in a run this is the durable sleep",
    ("injected", "_features/tasks/remote_step.py", "asyncio.timeout"): "in a run this is the durable timeout",
    ("injected", "_features/flows/run/target.py", "asyncio.sleep"): "in a run this is the durable sleep",
    ("injected", "_features/flows/run/target.py", "asyncio.timeout"): "in a run this is the durable timeout",
    ("injected", "_features/flows/built_in/control.py", "asyncio.sleep"): "in a run this is the durable sleep",
    ("injected", "_features/flows/built_in/looping.py", "asyncio.sleep"): "in a run this is the durable sleep",
    ("injected", "_features/machines/kinds.py", "asyncio.sleep"): "in a run this is the durable sleep",
    ("injected", "_features/machines/split.py", "asyncio.timeout"): "in a run this is the durable timeout",
    ("injected", "_kernel/replay/direct_wait.py", "asyncio.timeout"): "in a run this is the durable timeout",
    ("injected", "_kernel/replay/direct_wait.py", "asyncio.wait_for"): "it is looked at and not called",
    (
        "injected",
        "_kernel/journal/encryption.py",
        "os.urandom",
    ): "a nonce must never come twice, whatever a test injects",
    (
        "injected",
        "_kernel/client/secret_token.py",
        "os.urandom",
    ): "a secret must not be guessed, whatever a test injects",
    (
        "injected",
        "_kernel/runtime/commit/committer.py",
        "asyncio.sleep",
    ): "sleep(0) gives way and takes no time",
    (
        "injected",
        "_kernel/runtime/steps/caller.py",
        "asyncio.timeout",
    ): "the event loop times an attempt",
    (
        "injected",
        "_kernel/runtime/tree/observer_calls.py",
        "asyncio.timeout",
    ): "the event loop times a hook",
    (
        "injected",
        "_kernel/runtime/session/sessions.py",
        "asyncio.timeout",
    ): "the event loop times a stop",
    ("injected", "_features/flows/outside/http_client.py", "asyncio.timeout"): "the event loop times a request",
    ("injected", "http/asked.py", "asyncio.timeout"): "the event loop times a request",
    ("injected", "_kernel/define/talking.py", "asyncio.timeout"): "the event loop times a step that reads a stream",
    ("injected", "_features/flows/outside/program.py", "asyncio.timeout"): "the event loop times a program",
    ("injected", "_features/flows/outside/mcp_client.py", "asyncio.timeout"): "the event loop times a program",
    (
        "injected",
        "_kernel/runtime/session/stalls.py",
        "asyncio.wait_for",
    ): "the loop of the engine is blocked; it is another",
    (
        "injected",
        "_kernel/client/timed_store.py",
        "asyncio.timeout",
    ): "the event loop times a store that does not answer",
    ("injected", "engine/work.py", "asyncio.timeout"): "the event loop times the last look at the store",
    ("injected", "http/exchange.py", "asyncio.timeout"): "the event loop times the body of a request",
    ("injected", "_kernel/client/following.py", "asyncio.sleep"): "sleep(0) gives way and takes no time",
    ("injected", "_kernel/client/shown.py", "asyncio.sleep"): "sleep(0) gives way and takes no time",
    ("injected", "_kernel/client/slices.py", "asyncio.sleep"): "sleep(0) gives way and takes no time",
    ("injected", "engine/sync.py", "threading.Thread"): "the event loop of a program that has none",
    ("injected", "http/aside.py", "threading.Thread"): "what checks a document touches no engine state",
    ("injected", "_kernel/store/postgres/pool.py", "asyncio.sleep"): "a store that is away is not asked all the time",
    ("injected", "_kernel/store/postgres/listen.py", "asyncio.sleep"): "a store that is away is not asked all the time",
    ("injected", "_kernel/store/tables/handle.py", "asyncio.sleep"): "sleep(0) gives way and takes no time",
    (
        "injected",
        "_kernel/store/sqlite/connection.py",
        "time.monotonic",
    ): "the lock of a file is kept for real time by others",
    ("injected", "_kernel/store/sqlite/thread.py", "threading.Thread"): "the store's two threads touch no engine state",
}

CLOCK = "_kernel/runtime/clock.py"
BESIDE = {"proof/": "", "outlive_conformance/": "conformance/src/"}
"""What stands beside the package: how its files are shown, and the folder before that."""
FREE_OF_CLOCK = ("testing/", "cli/", "demo/", "dev/", *BESIDE)
COMMANDS = re.compile(r"_features/\w+/(\w+_)?commands[./]")
"""The commands of a feature: they look at the clock of the wall as every program does."""
TAKEN = re.compile(
    r"time\.\w+"
    r"|datetime\.datetime\.(now|utcnow|today)|datetime\.date\.today"
    r"|random\.(?!Random$)\w+|secrets\.(token_\w+|choice|rand\w+)|os\.urandom"
    r"|uuid\.uuid[1467]"
    r"|asyncio\.(sleep|wait_for|timeout|timeout_at)"
)
THREADS = {"threading.Thread", "threading.Timer"}
PLATFORM = "_platform.py"
OF_SOME_SYSTEMS = re.compile(
    r"(fcntl|resource|pwd|grp|termios|tty|pty|select|posix|msvcrt|winreg|_winapi)(\.\w+)?"
    r"|os\.(fork\w*|register_at_fork|kill|killpg|wait\w*|[gs]ete?[ug]id|[gs]etpg\w+|[gs]etsid|sched_\w+|pidfd_\w+)"
    r"|os\.(O_CLOEXEC|set_blocking)"
    r"|signal\.(SIG(KILL|STOP|CONT|CHLD|QUIT|HUP|USR1|USR2|ALRM|PIPE)|pthread_\w+|pause|alarm|setitimer|sigwait\w*)"
)
UNSAFE_MODULES = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "jinja2"}
UNSAFE_NAMES = {
    "builtins.eval",
    "builtins.exec",
    "builtins.compile",
    "os.system",
    "os.popen",
    "asyncio.create_subprocess_shell",
}
VAGUE_NAMES = {"util", "utils", "helper", "helpers", "common", "manager", "managers", "misc"}
LEFTOVER = re.compile(r"\b(FIXME|TODO|XXX)\b")
EXECUTE = {"execute", "executemany", "executescript"}
SQL = re.compile(
    r"\b(SELECT |INSERT INTO|UPDATE |DELETE FROM)"
    r"|(?i:^\s*(SELECT|INSERT\s+INTO|UPDATE\s+\w+\s+SET|DELETE\s+FROM)\s)"
)
CLASS = re.compile(r"^class (\w+).*\n(?:(?:[ )].*)?\n)*", re.MULTILINE)
LARGEST = 10
"""How many classes and how many files are shown."""


@dataclass(frozen=True, slots=True)
class Source:
    """One file of the package; what is not Python has an empty tree."""

    file: str
    text: str
    tree: ast.Module
    nodes: list[ast.AST]
    """All of the tree."""
    imports: dict[str, str]
    """Every imported name, and where it comes from."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One breach of one rule."""

    rule: str
    file: str
    what: str
    line: int
    advice: str

    def __str__(self) -> str:
        folder = BESIDE.get(f"{self.file.partition('/')[0]}/", "src/outlive/")
        return f"{folder}{self.file}:{self.line}: {self.rule}: {self.what}. {self.advice}"


Breaches = Iterator[tuple[int, str]]
Rule = Callable[[Source], Breaches]


@pytest.mark.parametrize("package", [PROOF, CONFORMANCE], ids=lambda it: it.name)
def test_code_beside_the_package_is_tidy(package: Path) -> None:
    """No rule is broken, without exception."""
    assert complaints(package, []) == []


def test_source_is_tidy() -> None:
    """No rule is broken apart from the exceptions, and every exception is needed. [S21 S40]"""
    found = complaints(PACKAGE, ALLOWED)

    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize("package", [PACKAGE, CONFORMANCE, PROOF], ids=lambda it: it.name)
def test_the_largest_classes_and_files_are_shown(package: Path) -> None:
    """A class has one subject, and no length fails: `pytest -s -k shown tests/house/test_tidy.py` lists the largest."""
    shown = [*largest(package)]

    sys.stdout.write("\n".join(["", f"The largest in {package.name}:", *shown, ""]))
    assert len(shown) == 2 * LARGEST


def largest(package: Path) -> Iterator[str]:
    """The largest classes with their lines, then the largest files."""
    texts = {path.relative_to(package).as_posix(): path.read_text("utf-8") for path in package.rglob("*.py")}
    classes = [
        (len(found[0].rstrip().splitlines()), f"class {found[1]} in {file}")
        for file, text in texts.items()
        for found in CLASS.finditer(text)
    ]
    files = [(len(text.splitlines()), file) for file, text in texts.items()]
    for lengths in (classes, files):
        yield from (f"{lines:4} lines: {what}" for lines, what in sorted(lengths, reverse=True)[:LARGEST])


def complaints(package: Path, allowed: Collection[tuple[str, str, str]]) -> list[str]:
    """Say what breaks a rule without being allowed to, and what is allowed to without doing it."""
    found = [(finding, (finding.rule, finding.file, finding.what)) for finding in findings(package)]
    unneeded = set(allowed) - {key for _, key in found}
    return [
        *(str(finding) for finding, key in found if key not in allowed),
        *(f"{key} no longer happens. Take it out of ALLOWED in {__file__}" for key in sorted(unneeded)),
    ]


def findings(package: Path) -> Iterator[Finding]:
    """Apply every rule to every file."""
    for path in sorted([*package.rglob("*.py"), *package.rglob("*.sql")]):
        is_python = path.suffix == ".py"
        text = path.read_text("utf-8")
        tree = ast.parse(text if is_python else "", str(path))
        nodes = list(ast.walk(tree))
        file = path.relative_to(package.parent if f"{package.name}/" in BESIDE else package).as_posix()
        source = Source(file, text, tree, nodes, imports_in(nodes))
        for rule in RULES if is_python else [finished]:
            advice = " ".join((rule.__doc__ or "").split())
            for line, what in dict.fromkeys(rule(source)):
                yield Finding(rule.__name__, source.file, what, line, advice)


# --- The rules -------------------------------------------------------------------------------------------


def injected(source: Source) -> Breaches:
    """Time, randomness, ids and threads come from the Clock, the Rng and the way to spawn that the code is
    given; _kernel/runtime/clock.py is their only source."""
    if source.file == CLOCK or source.file.startswith(FREE_OF_CLOCK) or COMMANDS.match(source.file):
        return
    imports = source.imports
    for node in source.nodes:
        match node:
            case ast.Name() | ast.Attribute():
                if TAKEN.fullmatch(name := dotted_name(node, imports)):
                    yield node.lineno, name
            case ast.Call(func=ast.expr() as made, args=args, keywords=keywords):
                name = dotted_name(made, imports)
                if name in THREADS or (name == "random.Random" and not args and not keywords):
                    yield node.lineno, name
            case ast.ClassDef(bases=bases):
                for base in bases:
                    if (name := dotted_name(base, imports)) in THREADS:
                        yield node.lineno, name
            case _:
                continue


def portable(source: Source) -> Breaches:
    """What only some systems have is asked for in _platform.py, with what takes its place elsewhere."""
    if source.file == PLATFORM or source.file.startswith(("testing/", *BESIDE)):
        return
    imports = source.imports
    for node in source.nodes:
        match node:
            case ast.Import() | ast.ImportFrom():
                yield from ((node.lineno, name) for name in imports_of(node) if OF_SOME_SYSTEMS.fullmatch(name))
            case ast.Name() | ast.Attribute():
                if OF_SOME_SYSTEMS.fullmatch(name := dotted_name(node, imports)):
                    yield node.lineno, name
            case ast.Constant(value=str() as text) if text.startswith("/proc"):
                yield node.lineno, text


def safe(source: Source) -> Breaches:
    """Bytes from a store or a network must never become code: use msgspec for data, a list of arguments for
    a process, and a function for behaviour."""
    imports = source.imports
    for node in source.nodes:
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, n.name) for n in names if n.name.split(".")[0] in UNSAFE_MODULES)
            case ast.ImportFrom(module=str(module)) if module.split(".")[0] in UNSAFE_MODULES:
                yield node.lineno, module
            case ast.Name() | ast.Attribute():
                if (name := dotted_name(node, imports)) in UNSAFE_NAMES:
                    yield node.lineno, name
            case ast.keyword(arg="shell", value=value) if ast.unparse(value) != "False":
                yield node.lineno, "shell=True"
            case _:
                continue


def named(source: Source) -> Breaches:
    """A file is named after what it holds; if it needs a vague name, its functions belong in other rooms."""
    for part in source.file.removesuffix(".py").split("/"):
        if part.strip("_") in VAGUE_NAMES:
            yield 1, part


def finished(source: Source) -> Breaches:
    """Do it now, or write an issue and take the mark out."""
    for line, text in enumerate(source.text.splitlines(), start=1):
        if mark := LEFTOVER.search(text):
            yield line, mark[0]


DECLARED = {"AnyEngine", "RunHandle", "Batch"}
"""Classes that say what their heirs carry out."""


def documented(source: Source) -> Breaches:
    """Every module, and every public class and function, opens with a docstring whose first line is a promise
    in plain words."""
    for node in [source.tree, *public_definitions(source.tree)]:
        if not ast.get_docstring(node):
            yield (1, "module") if isinstance(node, ast.Module) else (node.lineno, node.name)


def bound(source: Source) -> Breaches:
    """SQL is never put together from strings: bind parameters to a fixed text from a .sql file."""
    built = {name_of_built_string(node) for node in source.nodes} - {""}
    for node in source.nodes:
        match node:
            case ast.Call(func=ast.Attribute(attr=attr), args=[sql, *_]) if attr in EXECUTE:
                if any(is_built_string(part) or name_of(part) in built for part in ast.walk(sql)):
                    yield node.lineno, f"{attr}({ast.unparse(sql)})"
            case _:
                continue


def sql_in_files(source: Source) -> Breaches:
    """SQL lives in a .sql file named after the verb."""
    if not source.file.startswith("_kernel/store/"):
        return
    documentation = {id(node.value) for node in source.nodes if isinstance(node, ast.Expr)}
    for node in source.nodes:
        match node:
            case ast.Constant(value=str(text)) if SQL.search(text) and id(node) not in documentation:
                yield node.lineno, text.strip().splitlines()[0]
            case _:
                continue


RULES: list[Rule] = [injected, portable, safe, named, finished, documented, bound, sql_in_files]


# --- What the rules see ----------------------------------------------------------------------------------


def imports_in(nodes: Iterable[ast.AST]) -> dict[str, str]:
    """Map every imported name to where it comes from, wherever in the file the import stands."""
    found = {}
    for node in nodes:
        match node:
            case ast.Import(names=names):
                for name in names:
                    top = name.name.split(".")[0]
                    found[name.asname or top] = name.name if name.asname else top
            case ast.ImportFrom(module=module, names=names, level=level):
                for name in names:
                    found[name.asname or name.name] = f"{'.' * level}{module or ''}.{name.name}"
            case _:
                continue
    return found


def imports_of(node: ast.Import | ast.ImportFrom) -> list[str]:
    """The full names that one statement imports."""
    prefix = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
    return [prefix + name.name for name in node.names]


def dotted_name(node: ast.expr, imports: dict[str, str]) -> str:
    """Give the full name of what an expression refers to; a name that was not imported is a builtin."""
    match node:
        case ast.Name(id=name):
            return imports.get(name, f"builtins.{name}")
        case ast.Attribute(value=value, attr=attr):
            return f"{dotted_name(value, imports)}.{attr}"
        case _:
            return ""


def public_definitions(node: ast.AST) -> Iterator[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    """Find the public classes and functions of a module or class, also in its `if` and `try` blocks."""
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                if child.name.startswith("_") or any(is_silent(mark) for mark in child.decorator_list):
                    continue
                yield child
                if isinstance(child, ast.ClassDef):
                    yield from (it for it in public_definitions(child) if not carries_out(child))
            case ast.stmt() | ast.excepthandler():
                yield from public_definitions(child)
            case _:
                continue


def carries_out(node: ast.ClassDef) -> bool:
    """Tell whether the methods of a class are declared, and documented, by a base of it."""
    bases = [base.value if isinstance(base, ast.Subscript) else base for base in node.bases]
    return not DECLARED.isdisjoint(name_of(base) for base in bases)


def is_silent(decorator: ast.expr) -> bool:
    """Tell whether a decorator marks something documented elsewhere: an overload, an override, a setter."""
    return name_of(decorator) in {"overload", "override", "setter", "deleter"}


def is_built_string(node: ast.AST) -> bool:
    """Tell whether an expression puts a string together at run time."""
    match node:
        case ast.FormattedValue() | ast.BinOp(op=ast.Add() | ast.Mod()):
            return True
        case ast.Call(func=ast.Attribute(attr="format" | "join" | "replace")):
            return True
        case _:
            return False


def name_of_built_string(node: ast.AST) -> str:
    """Give the name that a statement binds to a string put together at run time, or an empty one."""
    match node:
        case ast.AugAssign(target=target):
            return name_of(target)
        case (
            ast.Assign(targets=[target], value=value)
            | ast.AnnAssign(target=target, value=ast.expr() as value)
            | ast.NamedExpr(target=target, value=value)
        ):
            return name_of(target) if any(map(is_built_string, ast.walk(value))) else ""
        case _:
            return ""


def name_of(node: ast.AST) -> str:
    """Give the last part of a name: `sql` for both `sql` and `self.sql`."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


# --- The rules can fail ----------------------------------------------------------------------------------

BROKEN = [
    ("injected", "engine.py", "import time\ntime.monotonic()"),
    ("injected", "engine.py", "from time import sleep as nap\nnap(1)"),
    ("injected", "engine.py", "import time as t\ndef f(now=t.time): ..."),
    ("injected", "engine.py", "from datetime import datetime\ndatetime.now(UTC)"),
    ("injected", "engine.py", "import datetime as dt\ndt.datetime.utcnow()"),
    ("injected", "engine.py", "import random\nrandom.random()"),
    ("injected", "engine.py", "import random\nrandom.Random()"),
    ("injected", "engine.py", "import uuid\nfield(default_factory=uuid.uuid4)"),
    ("injected", "engine.py", "import os\nos.urandom(8)"),
    ("injected", "engine.py", "import threading\nthreading.Thread(target=f)"),
    ("injected", "engine.py", "from threading import Thread\nclass Beat(Thread): ..."),
    ("injected", "engine.py", "import asyncio\nasync def f(): await asyncio.sleep(1)"),
    ("injected", "_runtime/worker.py", "def f():\n    from asyncio import wait_for\n    wait_for(x, 1)"),
    ("portable", "_kernel/store/sqlite/lock.py", "import fcntl"),
    ("portable", "engine.py", "from resource import getrusage"),
    ("portable", "engine.py", "import os\nos.register_at_fork(after_in_child=f)"),
    ("portable", "cli/x.py", "from signal import SIGKILL"),
    ("portable", "_lease/x.py", "Path('/proc/self/stat')"),
    ("safe", "engine.py", "import pickle"),
    ("safe", "testing/x.py", "from marshal import loads"),
    ("safe", "cli/x.py", "import shelve as shelf"),
    ("safe", "cli/x.py", "eval('1')"),
    ("safe", "cli/x.py", "exec('1')"),
    ("safe", "cli/x.py", "from os import system\nsystem('ls')"),
    ("safe", "cli/x.py", "subprocess.run('ls', shell=True)"),
    ("named", "_kernel/store/utils.py", ""),
    ("named", "_helpers/row.py", ""),
    ("named", "common.py", ""),
    ("named", "manager/__init__.py", ""),
    ("finished", "engine.py", "x = 1  # TODO: more"),
    ("finished", "engine.py", "'''XXX'''"),
    ("finished", "_kernel/store/sqlite/claim_runs.sql", "-- FIXME: slow"),
    ("documented", "engine.py", ""),
    ("documented", "engine.py", "'Module.'\ndef public(): ..."),
    ("documented", "_kernel/model/run.py", "'Module.'\nclass Public:\n    'Class.'\n    async def verb(self): ..."),
    ("documented", "engine.py", "'Module.'\ntry:\n    x\nexcept ImportError:\n    class Public: ..."),
    ("bound", "_kernel/store/x.py", "db.execute(f'PRAGMA x = {y}')"),
    ("bound", "_kernel/store/x.py", "db.execute('PRAGMA x = %s' % y)"),
    ("bound", "_kernel/store/x.py", "db.execute('PRAGMA x = ' + y)"),
    ("bound", "_kernel/store/x.py", "db.executemany('PRAGMA x = {}'.format(y), rows)"),
    ("bound", "_kernel/store/x.py", "sql = f'PRAGMA x = {y}'\ndb.execute(sql)"),
    ("bound", "_kernel/store/x.py", "self.sql = 'PRAGMA'\nself.sql += y\ndb.execute(self.sql)"),
    ("sql_in_files", "_kernel/store/x.py", "q = 'SELECT 1'"),
    ("sql_in_files", "_kernel/store/x.py", "q = '''\n  INSERT INTO runs'''"),
    ("sql_in_files", "_kernel/store/sqlite/x.py", "q = f'WITH x AS (DELETE FROM runs) {y}'"),
    ("sql_in_files", "_kernel/store/sqlite/x.py", "q = 'update runs set x = 1'"),
]
KEPT = [
    ("injected", "_kernel/runtime/clock.py", "import time\ntime.monotonic()"),
    ("injected", "testing/x.py", "import asyncio\nasyncio.sleep(1)"),
    ("injected", "engine.py", "import random\nrandom.Random(seed)"),
    ("injected", "engine.py", "import threading, uuid\nx: threading.Thread\nuuid.uuid5(space, name)"),
    ("injected", "engine.py", "def f(time, random):\n    return time.hour, random.random()"),
    ("injected", "engine.py", "from outlive._kernel.define.ambient import random, sleep\nrandom()\nsleep(1)"),
    ("portable", "_platform.py", "import fcntl"),
    ("portable", "testing/x.py", "import pwd"),
    ("portable", "engine.py", "import os, signal\nos.getpid()\nsignal.SIGINT"),
    ("safe", "engine.py", "subprocess.run(['ls'], shell=False)\nself.eval(x)\nself.exec(x)"),
    ("named", "_kernel/store/commonplace.py", ""),
    ("finished", "engine.py", "todo = mastodon = 1"),
    ("documented", "engine.py", "'Module.'\ndef f():\n    'A promise.'\n    def inner(): ..."),
    ("documented", "engine.py", "'Module.'\nclass _Private:\n    def verb(self): ..."),
    ("documented", "engine.py", "'Module.'\n@typing.overload\ndef f(): ..."),
    ("bound", "_kernel/store/x.py", "db.execute('PRAGMA x' ' = ?', (f'{y}',))\ndb.execute(self.sql['claim_runs'])"),
    ("sql_in_files", "_kernel/store/x.py", "'''Rows that SELECT gives.'''\ndb.execute('BEGIN IMMEDIATE')"),
    ("sql_in_files", "_kernel/store/x.py", "raise E('cannot update the run, select another')"),
    ("sql_in_files", "http/x.py", "q = 'SELECT 1'"),
]


def rules_broken(package: Path, file: str, text: str) -> set[str]:
    """Write one file of a package, and name the rules it breaks."""
    path = package / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return {finding.rule for finding in findings(package)}


@pytest.mark.parametrize(("rule", "file", "text"), BROKEN)
def test_a_breach_is_found(tmp_path: Path, rule: str, file: str, text: str) -> None:
    """Each rule sees the forms in which it can be broken."""
    assert rule in rules_broken(tmp_path, file, text)


@pytest.mark.parametrize(("rule", "file", "text"), KEPT)
def test_text_that_only_looks_like_a_breach_is_left_alone(tmp_path: Path, rule: str, file: str, text: str) -> None:
    """No rule reports a text that only looks like a breach."""
    assert rule not in rules_broken(tmp_path, file, text)


def test_a_finding_says_where_which_rule_and_what_instead(tmp_path: Path) -> None:
    """A developer can act on the message without reading this file."""
    (tmp_path / "engine.py").write_text('"""A module."""\n\nimport pickle\n', "utf-8")

    (finding,) = findings(tmp_path)

    assert str(finding).startswith("src/outlive/engine.py:3: safe: pickle. Bytes from a store")
    assert "use msgspec" in str(finding)


def test_an_exception_is_a_ratchet(tmp_path: Path) -> None:
    """A file with an exception may not keep it without need."""
    allowed = [("injected", "engine.py", "time.monotonic")]
    write = (tmp_path / "engine.py").write_text

    write('"""A module."""\n\nimport time\n\ntime.monotonic()\n', "utf-8")
    assert not complaints(tmp_path, allowed)
    write('"""A module."""\n', "utf-8")
    assert "no longer happens" in "\n".join(complaints(tmp_path, allowed))


def test_the_largest_come_first(tmp_path: Path) -> None:
    """A class counts from its line to its end, and a file counts as a whole."""
    (tmp_path / "a.py").write_text("x = 1\n\n\nclass A:\n    x = 1\n    y = 2\n", "utf-8")
    (tmp_path / "b.py").write_text("class B:\n    x = 1\n", "utf-8")

    assert [*largest(tmp_path)] == [
        "   3 lines: class A in a.py",
        "   2 lines: class B in b.py",
        "   6 lines: a.py",
        "   2 lines: b.py",
    ]


def test_every_rule_is_shown_to_fail() -> None:
    """A rule that nothing can break protects nothing."""
    assert {rule.__name__ for rule in RULES} == {rule for rule, _, _ in BROKEN}
