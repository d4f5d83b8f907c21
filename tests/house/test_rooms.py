"""Imports between the rooms of `src/outlive`, `conformance` and `proof` point one way, and never in a circle.

Every module is read with `ast`, so an import counts wherever it stands: at the top, in a function, under
`TYPE_CHECKING`, or as a literal given to `import_module`. A new room is declared in `MAY_IMPORT` below.
"""

import ast
import re
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

LEAVES = {"_cel", "errors", "telemetry", "_tasks", "_platform", "_interrupts", "_on_demand", "_garbage_collection"}
MODEL = LEAVES | {"_kernel.model"}
JOURNAL = MODEL | {"_kernel.journal"}
REPLAY = JOURNAL | {"_kernel.replay"}
CONTRACTS = JOURNAL | {"_kernel.store", "_kernel.lease"}
BACKENDS = {f"_kernel.{room}" for room in ("store.memory", "store.sqlite", "store.postgres", "lease.etcd")}
DEFINE = REPLAY | {"_kernel.define"}
CLIENT = DEFINE | {"_kernel.store", "_kernel.values", "_kernel.client"}
MOTION = CLIENT | CONTRACTS | {"_kernel.runtime"}
KERNEL = (
    MOTION
    | {"_kernel"}
    | {f"_kernel.runtime.{room}" for room in ("commit", "gate", "tree", "steps", "session", "services")}
)
NAMES = sorted(it.parent.name for it in (PACKAGE / "_features").glob("*/__init__.py"))
FEATURES = {f"_features.{name}" for name in NAMES}
DOORS = {f"{feature}:doors" for feature in FEATURES}
"""The files of a feature that are about a door: operations of the API, commands, and verbs through a server."""
ENGINE = KERNEL | FEATURES | {"_features", "config", "engine"}
HTTP = ENGINE | {"http", "metrics"}
EVERYTHING = (
    HTTP
    | BACKENDS
    | DOORS
    | {"checkpoints", "codecs", "events", "flow", "limits", "machine", "middleware", "retention", "stores", "types"}
    | {"cli", "dashboard", "demo", "dev", "integrations", "outlive", "remote", "testing"}
)

ALSO: dict[str, dict[str, str]] = {
    "bulk": {
        "retention": "`purge` is one of the verbs that are done to many runs, and `Purging` does it",
        "security": "the audit log says which runs were done before the worker of an operation was lost",
    },
    "deploys": {"flows": "an open run of a flow goes with the document that it is pinned to"},
    "events": {
        "flows": "published flows declare triggers in documents, whose expressions are matched with an event; a "
        "sink is asked with the allowed hosts, the secrets and the HTTP client of flows"
    },
    "flows": {
        "approvals": "the built-in step that asks people waits with `wait_for_approval`",
        "batches": "`outlive flows batch` writes the items of a batch whose runs are of a flow",
        "retention": "deleting a flow with `force` deletes its runs",
        "schedules": "a document declares the schedules of its flow, and they are checked with the document",
        "tasks": "a step of a document may be a remote step, which is called as one in Python is",
    },
    "fsck": {
        "batches": "the count of failed items in the journal of a chunk is compared with its outcomes",
        "schedules": "the row of a schedule has a checksum, which is compared",
    },
    "moving": {
        "flows": "a file of a tree has the documents that its runs are pinned to",
        "fsck": "a tree is checked before it is written to another store",
        "security": "an export and an import are noted in the audit log",
    },
    "retention": {
        "bulk": "`outlive runs purge` hands the purge to workers and follows it, as `retry` and `cancel` do",
        "batches": "only the plan of a batch names the blobs of chunks that have not begun, which must stay",
        "moving": "a purge that archives writes the file of a tree first",
    },
    "runs": {
        "approvals": "`outlive runs` has the commands `approve` and `reject`",
        "bulk": "`outlive runs cancel --workflow` and its sisters show the progress of a bulk operation",
        "flows": "`outlive run` starts a flow in a file as it starts a function",
        "retention": "`outlive runs` has the command `purge`",
    },
}
"""The other features that a feature may import, with the reason. All others know the kernel alone."""

DOORS_ALSO: dict[str, dict[str, str]] = {
    "cli": {},
    "http": {
        "events": "`outlive.http.signature` is public, and reads the headers that a delivery to a sink has",
        "events:doors": "`outlive.http.Webhooks` is public",
        "security": "the gate asks who a key and the token of a run belong to, before it looks for an operation",
    },
    "metrics": {},
    "remote": {
        "batches": "`Remote.map` and `Remote.start_batch` are verbs of the engine itself, with the options of a batch",
        "retention": "`Remote.purge` is a verb of the engine itself, and answers with `Purge`",
    },
}
"""The features that a door may import, with the reason: a door is machinery, and walks the list of features.
The typed parts of `Remote`, such as `remote.queues`, are in door files of features, which `remote` may import."""

# What each room may import besides itself, lowest room first. "outlive" is the package root.
MAY_IMPORT: dict[str, set[str]] = {
    **{leaf: set[str]() for leaf in LEAVES},
    # The kernel: it imports no feature.
    "_kernel.model": LEAVES,
    "_kernel.journal": MODEL,
    "_kernel.replay": JOURNAL,
    # What users hold: rooms below the client know of none of it.
    "_kernel.values": JOURNAL,
    "_kernel.store": JOURNAL,
    "_kernel.lease": JOURNAL | {"_kernel.store"},
    "_kernel.store.tables": JOURNAL | {"_kernel.store"},
    **dict.fromkeys(BACKENDS, CONTRACTS | {"_kernel.store.tables"}),
    "_kernel.define": REPLAY,
    "_kernel.client": DEFINE | {"_kernel.store", "_kernel.values"},
    "_kernel.runtime": CLIENT | CONTRACTS,
    "_kernel.runtime.commit": MOTION,
    "_kernel.runtime.gate": MOTION,
    "_kernel.runtime.tree": MOTION | {"_kernel.runtime.gate"},
    "_kernel.runtime.steps": MOTION | {f"_kernel.runtime.{room}" for room in ("commit", "gate", "tree")},
    "_kernel.runtime.session": KERNEL - {"_kernel"},
    "_kernel.runtime.services": MOTION,
    # The form of a declaration, and what features are given.
    "_kernel": KERNEL,
    # The features: each imports the kernel, and the few others of `ALSO`.
    "_features": {"_kernel", *FEATURES},
    **{f"_features.{name}": KERNEL | {"config"} | {f"_features.{it}" for it in ALSO.get(name, ())} for name in NAMES},
    **{
        f"_features.{name}:doors": HTTP - FEATURES
        | {"cli", "dev", "remote", "testing"}
        | {f"_features.{it}{room}" for it in (name, *ALSO.get(name, ())) for room in ("", ":doors")}
        for name in NAMES
    },
    # The public names of a subject.
    "codecs": JOURNAL,
    "events": DEFINE,
    "limits": DEFINE,
    "middleware": DEFINE,
    "flow": DEFINE | {"_features.flows"},
    "machine": DEFINE | {"_kernel.values", "_features.machines"},
    "retention": CLIENT | {"_features.retention"},
    "checkpoints": ENGINE,
    "stores": ENGINE | {"_kernel.store.memory", "_kernel.store.tables"},
    "types": ENGINE,
    "config": MODEL,
    # The composition root: the only room that names stores.
    "engine": ENGINE | BACKENDS,
    # The doors.
    "metrics": (ENGINE - FEATURES) | {"outlive"},
    "http": (HTTP - FEATURES) | {f"_features.{it}" for it in DOORS_ALSO["http"]},
    "dashboard": {"http"},
    "remote": (ENGINE - FEATURES) | DOORS | {"http"} | {f"_features.{it}" for it in DOORS_ALSO["remote"]},
    "testing": EVERYTHING,
    "cli": EVERYTHING - FEATURES,
    "demo": EVERYTHING,
    "dev": EVERYTHING,
    "integrations": EVERYTHING,
    "__main__": EVERYTHING,
    "outlive": EVERYTHING,
}
# These rooms hold what many may see and inner rooms that few may see: backends, parts of the runtime. A module of
# theirs belongs to the outer room only when it stands here; any other is a room of its own.
CONTRACT_MODULES = {
    "_kernel": {"cells", "feature", "in_engine"},
    "_kernel.runtime": {"clock", "environment", "failures", "lease_deadline", "lifetime", "reporter", "wakeup"},
    "_kernel.store": {
        "audit",
        "change",
        "checkpoints",
        "contract",
        "deleting",
        "diagnosis",
        "examine",
        "handle",
        "pending_write",
        "schedules",
        "streams",
    },
    "_kernel.lease": {"contract", "process", "sessions"},
    "_features": set[str](),
}
DOOR = re.compile(r"(\w+_)?(operations|commands|remote|wire|webhooks)")
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


def test_exceptions_are_needed() -> None:
    """A feature or a door that no longer imports another feature has no row for it."""
    used = {(room_of(it.importer).partition(":")[0], room_of(it.imported)) for it in imports_of(PACKAGE)}
    used |= {(importer, imported.partition(":")[0]) for importer, imported in used}
    features = {(f"_features.{name}", f"_features.{it}") for name, others in ALSO.items() for it in others}
    doors = {(door, f"_features.{it}") for door, others in DOORS_ALSO.items() for it in others}

    assert (features | doors) - used == set()


def test_flows_do_without_documents_of_other_systems() -> None:
    """Only `outlive.flow` and the commands import what makes flows of the documents of other systems."""
    for found in imports_of(PACKAGE):
        if found.imported.startswith(IMPORTERS) and not found.importer.startswith(IMPORTERS):
            assert found.importer.startswith(("outlive.flow", "outlive._features.flows.commands.")), found.where


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
    while room in CONTRACT_MODULES and parts and parts[0] not in CONTRACT_MODULES[room]:
        room, *parts = f"{room}.{parts[0]}", *parts[1:]
    # Machines have a file of this name that is about journals.
    is_door = room in FEATURES - {"_features.machines"} and parts and DOOR.fullmatch(parts[0])
    return f"{room}:doors" if is_door else room


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
        ("errors.py", "import outlive._kernel.model.id", "'errors' may not import '_kernel.model'"),
        ("_kernel/model/id.py", "from outlive._kernel.journal.event import E", "may not import '_kernel.journal'"),
        ("_kernel/replay/loop.py", "def f():\n    import outlive._kernel.store", "loop.py:2: '_kernel.replay' may not"),
        ("_kernel/replay/loop.py", "if TYPE_CHECKING:\n    from outlive._kernel.store import S", "'_kernel.store'"),
        ("_kernel/replay/loop.py", "from ..store.contract import Store", "may not import '_kernel.store'"),
        ("_kernel/replay/__init__.py", "from ..store import Store", "may not import '_kernel.store'"),
        ("_kernel/journal/fold.py", "import_module('outlive._kernel.replay.loop')", "may not import '_kernel.replay'"),
        ("_kernel/journal/fold.py", "from ... import errors", "imports the package root"),
        ("_kernel/store/contract.py", "from outlive._kernel.lease.contract import L", "'_kernel.lease'"),
        ("_kernel/store/sqlite/run.py", "from outlive._kernel.store.memory import M", "'_kernel.store.memory'"),
        ("_kernel/client/a.py", "from outlive._kernel.runtime.session.worker import W", "'_kernel.runtime.session'"),
        ("_kernel/runtime/clock.py", "from outlive._kernel.store import memory", "'_kernel.store.memory'"),
        # The kernel imports no feature, and features do not know each other.
        ("_kernel/client/a.py", "from outlive._features.flows.verbs import F", "may not import '_features.flows'"),
        ("_kernel/in_engine.py", "from outlive._features.flows.verbs import F", "may not import '_features.flows'"),
        ("_features/schedules/rows.py", "from outlive._features.batches.batch import B", "'_features.batches'"),
        (
            "_features/schedules/rows.py",
            "from outlive._features.schedules.commands import C",
            "'_features.schedules:doors'",
        ),
        ("_features/schedules/rows.py", "from outlive.http.operation import Call", "may not import 'http'"),
        ("_features/schedules/rows.py", "from outlive.engine import Engine", "may not import 'engine'"),
        ("http/app.py", "from outlive._kernel.store.memory import M", "may not import '_kernel.store.memory'"),
        ("dashboard/page.py", "from outlive.engine import Engine", "'dashboard' may not import 'engine'"),
        ("engine.py", "from outlive.testing import TestEngine", "'engine' may not import 'testing'"),
        ("engine.py", "import outlive", "imports the package root"),
        ("engine.py", "from . import errors", "imports the package root"),
    ],
)
def test_an_import_that_points_up_is_reported(tmp_path: Path, file: str, source: str, complaint: str) -> None:
    """Whatever form the import has, and wherever it stands."""
    package = build(tmp_path, {"_kernel/store/memory.py": "", file: source})

    reports = list(wrong_imports(package))

    assert len(reports) == 1
    assert complaint in reports[0]


@pytest.mark.parametrize(
    ("file", "source"),
    [
        (
            "_kernel/store/sqlite/run.py",
            "from .row import R\nfrom outlive._kernel.store import S\nimport outlive.errors",
        ),
        (
            "_kernel/runtime/clock.py",
            "from outlive._kernel.client import C\nfrom outlive._kernel.lease.contract import L",
        ),
        ("_features/schedules/operations.py", "from outlive.http.operation import Call"),
        ("_features/schedules/rows.py", "from outlive._kernel.store.contract import Store"),
        ("engine.py", "def f():\n    from outlive._kernel.store.sqlite import SqliteStore"),
        ("dashboard/page.py", "from outlive.http import app"),
        ("cli/demo.py", "import outlive\nfrom outlive import step"),
        ("testing/engine.py", "from outlive._kernel.store.memory import MemoryStore\nimport asyncio"),
        ("__init__.py", "from outlive.engine import Engine\nfrom outlive._kernel.define import step"),
    ],
)
def test_an_import_that_points_down_is_fine(tmp_path: Path, file: str, source: str) -> None:
    """An import that `MAY_IMPORT` allows is not reported."""
    expect_none(wrong_imports(build(tmp_path, {file: source})))


@pytest.mark.parametrize("file", ["kitchen/sink.py", "attic.py", "_kernel/store/mysql.py", "_features/kitchen/sink.py"])
def test_an_undeclared_room_is_reported(tmp_path: Path, file: str) -> None:
    """A new folder, a new file at the top and a new backend are rooms; the message says where they go."""
    (report,) = undeclared_rooms(build(tmp_path, {file: ""}))

    assert f"{file}:1: " in report
    assert "declare it in MAY_IMPORT" in report


def test_a_cycle_is_reported_as_a_chain(tmp_path: Path) -> None:
    """A cycle of imports is reported as a chain, even inside one room and with a lazy import."""
    files = {
        "_kernel/model/a.py": "from outlive._kernel.model.b import B",
        "_kernel/model/b.py": "def f():\n    from .c import C",
        "_kernel/model/c.py": "from outlive._kernel.model import a",
    }

    (report,) = cycles(build(tmp_path, files))

    assert "outlive._kernel.model.a imports outlive._kernel.model.b imports outlive._kernel.model.c" in report
