"""Imports between the rooms of `src/outlive`, `conformance` and `proof` point one way, and never in a circle.

Every module is read with `ast`, so an import counts wherever it stands: at the top, in a function, under
`TYPE_CHECKING`, or as a literal given to `import_module`. A new room is declared in `MAY_IMPORT` below.
"""

import ast
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "outlive"
CONFORMANCE = ROOT / "conformance" / "src" / "outlive_conformance"
PROOF = ROOT / "proof"
OURS = {"outlive", "outlive_conformance", "proof", "tests"}

LEAVES = {"_cel", "errors", "telemetry", "_tasks", "_platform", "_interrupts", "_on_demand"}
MODEL = LEAVES | {"_model"}
JOURNAL = MODEL | {"_journal"}
REPLAY = JOURNAL | {"_replay"}
CONTRACTS = JOURNAL | {"_store", "_lease"}
BACKENDS = {"_store.memory", "_store.sqlite", "_store.postgres", "_lease.etcd"}
DEFINE = REPLAY | {"_define"}
CLIENT = DEFINE | {"_store", "_values", "client"}
MOTION = CLIENT | CONTRACTS | {"_runtime"}
RUNTIME = MOTION | {f"_runtime.{room}" for room in ("commit", "gate", "tree", "steps", "session", "services")}
ENGINE = RUNTIME | {"engine"}
FEATURES = {
    f"_features.{it.name}" for it in (PACKAGE / "_features").iterdir() if it.is_dir() and it.name != "__pycache__"
}
EVERYTHING = (
    ENGINE
    | BACKENDS
    | {"_define.machine", "_features.flows"}
    | {"codecs", "config", "events", "flow", "limits", "machine", "middleware", "metrics", "http", "dashboard"}
    | {"checkpoints", "retention", "types", "_kernel", "_features"}
    | FEATURES
    | {"testing", "cli", "demo", "dev", "outlive", "integrations", "remote"}
)

# What each room may import besides itself, lowest room first. "outlive" is the package root.
MAY_IMPORT: dict[str, set[str]] = {
    "_cel": set(),
    "errors": set(),
    "telemetry": set(),
    "_tasks": set(),
    "_platform": set(),
    "_interrupts": set(),
    "_on_demand": set(),
    "_model": LEAVES,
    "_journal": MODEL,
    "_replay": JOURNAL,
    "codecs": JOURNAL,
    "events": DEFINE,
    "limits": DEFINE,
    "middleware": DEFINE,
    "machine": DEFINE | {"_define.machine"},
    "retention": CLIENT,
    "checkpoints": ENGINE,
    "types": ENGINE,
    "config": MODEL,
    # What users hold: rooms below the client know of none of it.
    "_values": JOURNAL,
    "_store": JOURNAL,
    "_lease": JOURNAL | {"_store"},
    "_store.tables": JOURNAL | {"_store"},
    **dict.fromkeys(BACKENDS, CONTRACTS | {"_store.tables"}),
    "_define": REPLAY,
    # A front door: nothing below the testing kit may know that there are machines.
    "_define.machine": DEFINE,
    # A feature imports what moves runs, and no other feature.
    "_features": {"_kernel", *FEATURES},
    **dict.fromkeys(FEATURES, RUNTIME | {"_kernel", "config", "_define.machine", "http", "remote"}),
    "flow": DEFINE | {"_features.flows"},
    # The library of a store keeps flows, and its workers load them; below that, no room knows of them.
    "client": DEFINE | {"_store", "_values", "_features.flows"},
    "_runtime": CLIENT | CONTRACTS,
    "_runtime.commit": MOTION,
    "_runtime.gate": MOTION,
    "_runtime.tree": MOTION | {"_runtime.gate"},
    "_runtime.steps": MOTION | {"_runtime.commit", "_runtime.gate", "_runtime.tree"},
    "_runtime.session": RUNTIME,
    "_runtime.services": MOTION | {"_features.flows"},
    "_kernel": RUNTIME,
    # Flows have a table of the configuration, which is checked with the others.
    "engine": RUNTIME | BACKENDS | {"config", "_kernel", "_features", "_features.flows"},
    "metrics": ENGINE | {"outlive"},
    "http": ENGINE | {"_features", "_features.flows", "metrics"},
    "dashboard": {"http"},
    # As the API below it has documents of flows.
    "remote": ENGINE | {"http"} | FEATURES,
    "testing": EVERYTHING,
    "cli": EVERYTHING,
    "demo": EVERYTHING,
    "dev": EVERYTHING,
    "integrations": EVERYTHING,
    "__main__": EVERYTHING,
    "outlive": EVERYTHING,
}
# These rooms hold what many may see and inner rooms that few may see: backends, parts of the runtime, features. A
# module of theirs belongs to the outer room only when it stands here; any other is a room of its own.
CONTRACT_MODULES = {
    "_define": {
        "approval",
        "asks",
        "batch",
        "bulk",
        "decide",
        "delivery",
        "determinism",
        "gathered",
        "in_run",
        "in_step",
        "intervention",
        "layout",
        "live_resources",
        "logger",
        "map",
        "method",
        "middleware",
        "own",
        "plain",
        "promise",
        "registry",
        "remote",
        "resources",
        "run_step",
        "saga",
        "schedule",
        "spans",
        "step",
        "talking",
        "tracing",
        "workflow",
    },
    "_runtime": {"clock", "environment", "failures", "lease_deadline", "reporter", "wakeup"},
    "_store": {
        "audit",
        "change",
        "checkpoints",
        "contract",
        "deleting",
        "diagnosis",
        "examine",
        "handle",
        "schedules",
        "streams",
    },
    "_lease": {"contract", "process", "sessions"},
    "_features": set(),
}
IMPORTERS = "outlive._features.flows.other_systems"
"""The makers of flows from documents of other systems: a program that runs flows does without them."""


@dataclass(frozen=True, slots=True)
class Import:
    """One of our modules naming another one."""

    importer: str
    imported: str
    where: str


def test_the_package_is_found() -> None:
    """The checks below look at real modules, not at an empty folder."""
    assert modules_of(PACKAGE)


def test_every_room_is_declared() -> None:
    """A new room says what it may import before it is built."""
    expect_none(undeclared_rooms(PACKAGE))


def test_imports_point_one_way() -> None:
    """A room imports only what stands below it."""
    expect_none(wrong_imports(PACKAGE))


@pytest.mark.parametrize("package", [PACKAGE, CONFORMANCE, PROOF], ids=lambda it: it.name)
def test_imports_form_no_cycle(package: Path) -> None:
    """Every module can be read without having read the modules that import it."""
    expect_none(cycles(package))


def test_flows_do_without_documents_of_other_systems() -> None:
    """Only `outlive.flow` and the commands import what makes flows of the documents of other systems."""
    for found in imports_of(PACKAGE):
        if found.imported.startswith(IMPORTERS) and not found.importer.startswith(IMPORTERS):
            assert found.importer.startswith(("outlive.flow", "outlive.cli.")), found.where


def test_the_package_does_without_what_stands_beside_it() -> None:
    """Nothing that is installed imports what is not: the conformance suite, the servers of tests, the proof."""
    expect_none(
        f"{it.where}: {it.imported} is not in the wheel"
        for it in imports_of(PACKAGE)
        if it.imported.split(".")[0] != "outlive"
    )


def test_the_conformance_package_needs_only_the_package() -> None:
    """Authors of stores install it without our tests; scripts that start a server need neither the suite nor pytest."""
    for found in imports_of(CONFORMANCE):
        of_servers = found.importer.startswith("outlive_conformance.servers")
        allowed = ("outlive.", "outlive_conformance.servers." if of_servers else "outlive_conformance.suite.")
        assert f"{found.imported}.".startswith(allowed), f"{found.where}: {found.imported}"
    for path in (CONFORMANCE / "servers").glob("*.py"):
        assert "pytest" not in path.read_text("utf-8"), path.name


def test_programs_of_the_proof_stand_alone() -> None:
    """Each imports the package, itself and what all of them share, and neither the tests nor another of them."""
    for found in imports_of(PROOF):
        own = ".".join(found.importer.split(".")[:2])
        allowed = ("outlive", "outlive_conformance.servers", own, "proof.postgres_place")
        assert f"{found.imported}.".startswith(tuple(f"{name}." for name in allowed)), found.where


def expect_none(complaints: Iterable[str]) -> None:
    """Fail with one complaint per line."""
    listed = list(complaints)
    assert not listed, "\n" + "\n".join(listed)


def undeclared_rooms(package: Path) -> Iterator[str]:
    """Complain about each room that has no entry in `MAY_IMPORT`."""
    for module, path in modules_of(package).items():
        room = room_of(module)
        if room not in MAY_IMPORT:
            yield (
                f"{path.relative_to(package.parents[1])}:1: room {room!r} is unknown. Use a room of design "
                f"section 9, or declare it in MAY_IMPORT (part of a contract: CONTRACT_MODULES) in {__file__}"
            )


def wrong_imports(package: Path) -> Iterator[str]:
    """Complain about each import that does not point down."""
    for found in imports_of(package):
        here, there = room_of(found.importer), room_of(found.imported)
        if there == here or there in MAY_IMPORT.get(here, EVERYTHING):
            continue
        if there == "outlive":
            yield f"{found.where}: imports the package root. Write: from outlive.<room> import <name>"
        else:
            allowed = ", ".join(sorted(MAY_IMPORT[here])) or "nothing of ours"
            yield (
                f"{found.where}: {here!r} may not import {there!r}, only {allowed}. "
                "Move the code to the lower room, or let the upper room pass the object in"
            )


def cycles(package: Path) -> Iterator[str]:
    """Complain about one circle of imports, if there is any."""
    graph: dict[str, set[str]] = {}
    for found in imports_of(package):
        graph.setdefault(found.importer, set()).add(found.imported)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        chain = " imports ".join(reversed(error.args[1]))
        yield f"{chain}. Move what both sides need into a module of its own"


def modules_of(package: Path) -> dict[str, Path]:
    """Give every module of the package by its dotted name."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def room_of(module: str) -> str:
    """Name the room a module stands in, declared or not."""
    _, *inside = module.split(".")
    if not inside:
        return "outlive"
    room, *parts = inside
    is_backend = room in CONTRACT_MODULES and parts and parts[0] not in CONTRACT_MODULES[room]
    return f"{room}.{parts[0]}" if is_backend else room


@cache
def imports_of(package: Path) -> list[Import]:
    """Every import of one of our modules by another."""
    return list(_imports_of(package))


def _imports_of(package: Path) -> Iterator[Import]:
    modules = modules_of(package)
    for importer, path in modules.items():
        where = path.relative_to(package.parents[1] if package.parent.name == "src" else package.parent)
        home = importer.split(".") if path.name == "__init__.py" else importer.split(".")[:-1]
        for node in ast.walk(ast.parse(path.read_text("utf-8"), str(path))):
            if isinstance(node, ast.Import | ast.ImportFrom | ast.Call):
                for imported in imported_by(node, home=home, modules=modules):
                    if imported.split(".")[0] in OURS and imported != importer:
                        yield Import(importer, imported, f"{where}:{node.lineno}")


def imported_by(
    node: ast.Import | ast.ImportFrom | ast.Call, *, home: list[str], modules: Collection[str]
) -> list[str]:
    """Give the modules that one statement, or one `import_module("...")`, names."""
    match node:
        case ast.Import(names=names):
            return [alias.name for alias in names]
        case ast.ImportFrom(module=module, names=names, level=level):
            above = home[: len(home) - level + 1] if level else []
            base = ".".join([*above, module] if module else above)
            if base == "outlive":  # Whatever is named, it comes by way of the root.
                return [base]
            inner = [f"{base}.{alias.name}" for alias in names]
            return [name if name in modules else base for name in inner]
        case ast.Call(
            func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module"),
            args=[ast.Constant(value=str(name)), *_],
        ):
            return [name]
        case _:
            return []


# --- The checks themselves can fail --------------------------------------------------------------------


def build(root: Path, files: dict[str, str]) -> Path:
    """Write a package with these files."""
    package = root / "src" / "outlive"
    for name, source in {"__init__.py": "", **files}.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, "utf-8")
    return package


@pytest.mark.parametrize(
    ("file", "source", "complaint"),
    [
        ("errors.py", "import outlive._model.id", "'errors' may not import '_model'"),
        ("_model/id.py", "from outlive._journal.event import E", "'_model' may not import '_journal'"),
        ("_replay/loop.py", "def f():\n    import outlive._store", "loop.py:2: '_replay' may not import"),
        ("_replay/loop.py", "if TYPE_CHECKING:\n    from outlive._store import S", "import '_store'"),
        ("_replay/loop.py", "from .._store.contract import Store", "'_replay' may not import '_store'"),
        ("_replay/__init__.py", "from .._store import Store", "'_replay' may not import '_store'"),
        ("_journal/fold.py", "import_module('outlive._replay.loop')", "may not import '_replay'"),
        ("engine.py", "from outlive._define.machine.machine import Machine", "may not import '_define.machine'"),
        ("_journal/fold.py", "from .. import _model", "imports the package root"),
        ("_store/contract.py", "from outlive._lease.contract import L", "may not import '_lease'"),
        ("_store/sqlite/run.py", "from outlive._store.memory import M", "may not import '_store.memory'"),
        ("client.py", "from outlive._runtime.session.worker import W", "'client' may not import '_runtime.session'"),
        ("_runtime/clock.py", "from outlive._store import memory", "may not import '_store.memory'"),
        ("http/app.py", "from outlive._store.memory import M", "'http' may not import '_store.memory'"),
        ("dashboard/page.py", "from outlive.engine import Engine", "'dashboard' may not import 'engine'"),
        ("engine.py", "from outlive.testing import TestEngine", "'engine' may not import 'testing'"),
        ("engine.py", "import outlive", "imports the package root"),
        ("engine.py", "from . import client", "imports the package root"),
    ],
)
def test_an_import_that_points_up_is_reported(tmp_path: Path, file: str, source: str, complaint: str) -> None:
    """Whatever form the import has, and wherever it stands."""
    package = build(tmp_path, {"_store/memory.py": "", file: source})

    reports = list(wrong_imports(package))

    assert len(reports) == 1
    assert complaint in reports[0]


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("_store/sqlite/run.py", "from .row import R\nfrom outlive._store import S\nimport outlive.errors"),
        ("_runtime/clock.py", "from outlive.client import C\nfrom outlive._lease.contract import L"),
        ("engine.py", "def f():\n    from outlive._store.sqlite import SqliteStore"),
        ("dashboard/page.py", "from outlive.http import app"),
        ("cli/demo.py", "import outlive\nfrom outlive import step"),
        ("testing/engine.py", "from outlive._store.memory import MemoryStore\nimport asyncio"),
        ("__init__.py", "from outlive.engine import Engine\nfrom outlive._define import step"),
    ],
)
def test_an_import_that_points_down_is_fine(tmp_path: Path, file: str, source: str) -> None:
    """An import that `MAY_IMPORT` allows is not reported."""
    expect_none(wrong_imports(build(tmp_path, {file: source})))


@pytest.mark.parametrize("file", ["kitchen/sink.py", "attic.py", "_store/mysql.py"])
def test_an_undeclared_room_is_reported(tmp_path: Path, file: str) -> None:
    """A new folder, a new file at the top and a new backend are rooms; the message says where they go."""
    (report,) = undeclared_rooms(build(tmp_path, {file: ""}))

    assert f"{file}:1: " in report
    assert "declare it in MAY_IMPORT" in report


def test_a_cycle_is_reported_as_a_chain(tmp_path: Path) -> None:
    """A cycle of imports is reported as a chain, even inside one room and with a lazy import."""
    files = {
        "_model/a.py": "from outlive._model.b import B",
        "_model/b.py": "def f():\n    from .c import C",
        "_model/c.py": "from outlive._model import a",
    }

    (report,) = cycles(build(tmp_path, files))

    assert "outlive._model.a imports outlive._model.b imports outlive._model.c" in report
