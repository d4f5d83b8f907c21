"""An engine and a connection have the same verbs, with the names, parameters and results that are declared."""

from __future__ import annotations

import dataclasses
import inspect
import re
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from outlive import connect, flow, types
from outlive._features.approvals.links import Links
from outlive._features.approvals.remote import RemoteLinks
from outlive._features.batches.batch import StoredBatch
from outlive._features.batches.remote import RemoteBatch
from outlive._features.namespaces.quotas import Quotas
from outlive._kernel.client import contract
from outlive._kernel.client.handle import StoredRun
from outlive.engine import Engine, any_engine
from outlive.engine.any_engine import AnyEngine, SyncEngine, SyncRunHandle
from outlive.flow import Document, FlowWorkflow
from outlive.remote.engine import Remote
from outlive.remote.run import RemoteRun
from outlive.types import Batch, BulkOperation, RunHandle

ONLY_AN_ENGINE = {
    "asgi": "it is the server",
    "lifespan": "it is the server",
    "work": "it is the worker of this process, for a while",
    "configured": "a connection has no configuration",
    "export": "a copy has nothing hidden: it needs the store",
    "import_run": "it writes a journal: it needs the store",
    "checkpoints": "for programs that keep their own state in the store",
    "quotas": "an operator of the store sets them: `outlive namespaces`",
}
ONLY_A_CONNECTION = {
    "operate": "every operation of the API by its name",
    "follow": "the same for operations that send messages one by one",
}
FOR_THE_ENGINE_ITSELF = {
    "AuditLog": {"acting"},
    "Links": {"show"},
}
"""The rest of a namespace of an engine, for programs beside the store."""


NAMES = vars(any_engine) | vars(contract) | {"Document": Document, "FlowWorkflow": FlowWorkflow, "Path": Path}
"""Names in annotations that type checkers alone import."""


def names_in(kind: type) -> set[str]:
    """The public methods and properties of a class."""
    return {name for name in dir(kind) if not name.startswith("_")}


def resolved(kind: type, name: str) -> tuple[Any, ...]:
    """The parameters and the result of a method, with its types."""
    method = inspect.getattr_static(kind, name)
    hints = get_type_hints(method, localns=NAMES)
    given = [(it.name, it.kind, it.default) for it in inspect.signature(method).parameters.values()]
    return given, hints


def spaces() -> Iterator[tuple[str, type]]:
    """The namespaces that are declared, each with its verbs."""
    for name in sorted(names_in(AnyEngine)):
        member = inspect.getattr_static(AnyEngine, name)
        if isinstance(member, property) and name not in ("loop", "sync"):
            yield name, get_type_hints(member.fget, localns=NAMES)["return"]


def made_of(kind: type, space: str) -> type:
    """The class of a namespace of an engine or a connection."""
    getter = inspect.getattr_static(kind, space).fget
    found: type = get_type_hints(getter, localns=vars(inspect.getmodule(getter)))["return"]
    return found


CASES: list[tuple[type, type]] = [
    (AnyEngine, Engine),
    (AnyEngine, Remote),
    *[(verbs, made_of(kind, space)) for space, verbs in spaces() for kind in (Engine, Remote)],
    (contract.LinkVerbs, Links),
    (contract.LinkVerbs, RemoteLinks),
    (RunHandle, StoredRun),
    (RunHandle, RemoteRun),
    (Batch, StoredBatch),
    (Batch, RemoteBatch),
]


@pytest.mark.parametrize(("declared", "ours"), CASES, ids=lambda it: it.__name__)
def test_a_verb_takes_and_gives_what_is_declared(declared: type, ours: type) -> None:
    """By the same names, in the same order, with the same defaults and types."""
    names = {name for name in names_in(declared) if inspect.isfunction(inspect.getattr_static(declared, name))}
    different = {
        name: (resolved(declared, name), resolved(ours, name))
        for name in names
        if resolved(declared, name) != resolved(ours, name)
    }

    assert names
    assert different == {}


@pytest.mark.parametrize(("declared", "ours"), CASES, ids=lambda it: it.__name__)
def test_every_other_verb_has_a_reason_in_the_tables(declared: type, ours: type) -> None:
    """A verb that only an engine or only a connection has stands in a table with the reason."""
    only = {"Engine": ONLY_AN_ENGINE.keys(), "Remote": ONLY_A_CONNECTION.keys(), **FOR_THE_ENGINE_ITSELF}

    assert names_in(ours) - names_in(declared) == only.get(ours.__name__, set())


@pytest.mark.parametrize(("declared", "ours"), CASES, ids=lambda it: it.__name__)
def test_why_something_is_done_is_its_reason(declared: type, ours: type) -> None:
    """One word in every verb; the `comment` of a decision is for the run."""
    names = {name for name in names_in(declared) if inspect.isfunction(inspect.getattr_static(declared, name))}
    taken = {it for name in names for it in inspect.signature(getattr(ours, name)).parameters}

    assert taken.isdisjoint({"note", "why", "because"})


def test_a_connection_has_every_namespace() -> None:
    """Each with a class of its own."""
    kinds = {space: made_of(Remote, space) for space, _ in spaces()}

    assert len(kinds) == len(set(kinds.values())) == 16
    assert all(isinstance(getattr(connect("http://127.0.0.1:9"), space), kind) for space, kind in kinds.items())


def typed_in(sync: type) -> set[str]:
    """The names that a type checker knows of a class for sync code."""
    source = inspect.getsource(sync)
    return set(re.findall(r"^ +(?:def )?(\w+)(?: = Verb\(|\(|: [A-Z])", source, re.MULTILINE))


@pytest.mark.parametrize(
    ("declared", "sync"),
    [
        (AnyEngine, SyncEngine),
        (RunHandle, SyncRunHandle),
        *[(verbs, getattr(any_engine, "Sync" + space.title().replace("_", ""))) for space, verbs in spaces()],
        (contract.LinkVerbs, any_engine.SyncLinks),
        (Batch, any_engine.SyncBatch),
    ],
    ids=lambda it: it.__name__,
)
def test_type_checkers_know_every_verb_of_sync_code(declared: type, sync: type) -> None:
    """A verb that has no line there would be of any type."""
    assert names_in(declared) - {"loop", "sync"} <= typed_in(sync)


GIVING = (
    *(AnyEngine, RunHandle, Batch, BulkOperation, contract.LinkVerbs, Quotas),
    *(any_engine.SyncEngine, SyncRunHandle, any_engine.SyncBatch, any_engine.SyncBulkOperation),
    *(verbs for _, verbs in spaces()),
)
"""The classes whose verbs give values."""
NAMED = {*(getattr(types, name) for name in types.__all__), flow.Document}
"""The classes that programs can name in annotations."""


def classes_in(hint: Any) -> Iterator[type]:
    """The classes of ours in an annotation."""
    for part in typing.get_args(hint):
        yield from classes_in(part)
    it = typing.get_origin(hint) or hint
    if isinstance(it, type) and it.__module__.startswith("outlive"):
        yield it


def given_by(kind: type) -> Iterator[type]:
    """The classes of the values that the verbs of a class give."""
    for name in names_in(kind):
        method = inspect.getattr_static(kind, name)
        if inspect.isfunction(method):
            module = vars(inspect.getmodule(method))
            yield from classes_in(get_type_hints(method, localns=NAMES | module).get("return"))


def values() -> set[type]:
    """The classes of the values that verbs give, and of the values in their fields."""
    found: set[type] = set()
    new = [it for kind in GIVING for it in given_by(kind)]
    while new:
        it = new.pop()
        if it not in found:
            found.add(it)
            is_value = it is not flow.Document and (hasattr(it, "__struct_fields__") or dataclasses.is_dataclass(it))
            new += [each for hint in get_type_hints(it).values() for each in classes_in(hint)] if is_value else []
    return found


def test_every_value_that_a_verb_gives_has_a_public_name() -> None:
    """A program can annotate what it holds: the class is in `outlive.types`, a document in `outlive.flow`."""
    assert len(values()) > 40
    assert {it.__name__ for it in values() - NAMED} == set()


def test_a_value_says_itself_in_one_line() -> None:
    """Its class has a `repr` for people; a document is what a person has written."""
    structs = {it for it in values() if hasattr(it, "__struct_fields__") or dataclasses.is_dataclass(it)}

    assert {it.__name__ for it in structs if not _is_written(it.__repr__)} == {"Document"}


def _is_written(method: Any) -> bool:
    """Whether it is code of ours: that of a struct is not a function, and that of a dataclass is wrapped."""
    return inspect.isfunction(method) and not hasattr(method, "__wrapped__")


def test_an_engine_has_fourteen_parameters() -> None:
    """A setting that comes belongs into the value of its subject, as `Limits`, or is counted here."""
    given = [name for name in inspect.signature(Engine.__init__).parameters if name != "self" and name[0] != "_"]

    assert len(given) == 14, given
