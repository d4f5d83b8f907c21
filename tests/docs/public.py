"""What is public: the names of `outlive`, of its namespaces and of an engine, and the members of their classes."""

from __future__ import annotations

import builtins
import inspect
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

import outlive
from outlive._kernel.journal.event import Event as StoredEvent
from outlive._kernel.values.event import INSTANTS, RUNS, SPANS, public_fields
from outlive.errors.known import ERRORS
from tests.docs import source
from tests.docs.source import Field

GIVEN = (
    *("types", "errors", "events"),
    *(
        "flow.Document",
        "flow.FlowWorkflow",
        "flow.Imported",
        "flow.Problem",
        "flow.Reference",
        "flow.FlowError",
        "flow.FlowInputError",
    ),
    *("http.Asking", "middleware.StartCall", "checkpoints.CheckpointStore", "checkpoints.CheckpointKind"),
    *(
        "testing.CrashReport",
        "testing.DeployReport",
        "testing.HistoryMismatchError",
        "testing.SurvivalError",
        "testing.Survivor",
    ),
    *("machine.Observer", "middleware.Middleware", "codecs.PayloadCodec"),
)
"""What programs are given or derive from, and never make: whole namespaces, or names. Facts of machines are too."""
MADE = ("types.Recovery", "types.WorkerOptions")
"""What they make all the same."""
NO_PAGES = ("integrations",)
"""A namespace without names of its own: each of its modules needs a framework, and has a guide."""
DECLARED = "AnyEngine"
"""What declares the verbs of an engine and of a connection."""
NOT_NAMESPACES = ("sync",)
"""Properties of an engine that are the engine once more."""


IN_DATA = (
    (r"\bPayload( \| None)?", "Any"),
    (r"\b(RunCreated|SignalReceived|AskReceived|MessageSetAside|Interrupted|OpenRequest)\b", "dict[str, Any]"),
    (r"\btuple\[(.*), \.\.\.\]", r"list[\1]"),
    (r"\bRunStatus\b", "Status"),
)
"""Types of a journal, and what people see in their place."""
INSIDE = {
    # It takes the place of the clock of an engine (`_runtime.clock.Clock`): these are what an engine asks a clock.
    "SkipClock": ("call_later", "monotonic", "new_id", "nonce", "pulse", "random", "reseed", "spawn"),
    # It is middleware that Outlive knows (`RunTracer`): these tell it what happens to runs between their steps.
    "Tracing": ("ended", "pass_on", "taken_over"),
}
"""Members without an underscore that are for Outlive itself, with the reason: the reference leaves them out."""


def spaces() -> list[str]:
    """The namespaces of `outlive` that have names."""
    return sorted(name for name in set(dir(outlive)) - set(NO_PAGES) if inspect.ismodule(getattr(outlive, name, None)))


def names_in(module: ModuleType) -> list[str]:
    """The names of a namespace: its list, or else its classes; classes first."""
    if hasattr(module, "__all__"):
        return sorted(module.__all__, key=lambda name: (not name[:1].isupper(), name.lower()))
    found = {name: it for name, it in vars(module).items() if inspect.isclass(it) and not name.startswith("_")}
    return sorted(name for name, it in found.items() if it.__module__.startswith("outlive"))


def public_names() -> Iterator[tuple[str, Any]]:
    """Every public name, behind its namespace."""
    for name in outlive.__all__:
        yield f"outlive.{name}", getattr(outlive, name)
    for space in spaces():
        module = getattr(outlive, space)
        for name in names_in(module):
            yield f"{space}.{name}", getattr(module, name)


@cache
def _classes() -> set[int]:
    return {id(it) for _, it in public_names()}


def is_public(it: type) -> bool:
    """Whether a class has a name that programs can write."""
    return id(it) in _classes()


def is_made(name: str) -> bool:
    """Whether programs make objects of the class that has this name."""
    is_given = name.partition(".")[0] in GIVEN or name in GIVEN or name.endswith("Fact") or "." not in name
    return name in MADE or not is_given


@cache
def errors() -> dict[str, type[BaseException]]:
    """The errors that a docstring may name: those of programs, of Python, and ours that only have a code."""
    found = {**vars(builtins), **ERRORS, **{name.rpartition(".")[2]: it for name, it in public_names()}}
    return {name: it for name, it in found.items() if isinstance(it, type) and issubclass(it, BaseException)}


def reason_of(name: str) -> tuple[str, str]:
    """The public error for an error that a docstring names, and the code that tells it from others; the code is empty
    if the error itself is public."""
    it = ERRORS.get(name)
    if it is None or name in outlive.errors.__all__:
        return name, ""
    return next(base.__name__ for base in it.__mro__ if base.__name__ in outlive.errors.__all__), it.code


# -- Members -----------------------------------------------------------------------------------------------------


def members_of(it: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties of a class, its own first and then the members of its private base classes."""
    if getattr(it, "_is_protocol", False) and it.__name__ == DECLARED:
        return  # The page of an engine has them.
    seen = {name for each in source.ours(it) for name in INSIDE.get(each.__name__, ())}
    for each in reversed(source.ours(it)):
        if each is not it and is_public(each):
            break
        for name, member in vars(each).items():
            inner = member.__func__ if isinstance(member, classmethod | staticmethod) else member
            inner = getattr(inner, "__wrapped__", inner)
            is_named = isinstance(inner, property) or (inspect.isfunction(inner) and inner.__name__ == name)
            if is_named and not name.startswith("_") and name not in seen:
                seen.add(name)
                yield name, inner


def fields_of(it: type) -> Iterator[Field]:
    """The public fields and properties of a class; of an event, what `data` has."""
    if issubclass(it, StoredEvent):
        yield from (_in_data(field) for field in source.fields_of(it) if field.name in public_fields(it))
        return
    inside = {name for each in source.ours(it) for name in INSIDE.get(each.__name__, ())}
    yield from (field for field in source.fields_of(it) if field.name not in inside)
    for name, member in members_of(it):
        if isinstance(member, property):
            text = " ".join(source.said_of(inspect.getdoc(member) or "").prose.split())
            yield Field(name, source.returned_by(member.fget), "", text)


def _in_data(field: Field) -> Field:
    """A field of a journal as the data of an event has it."""
    is_given = not field.default and "None" not in field.type
    shown = {**dict.fromkeys(INSTANTS, "datetime"), **dict.fromkeys(SPANS, "timedelta"), "parent": "str"}.get(
        field.name
    )
    if shown is None:
        shown = field.type
        for stored, public in IN_DATA:
            shown = re.sub(stored, public, shown)
    elif not is_given:
        shown += " | None"
    return Field(RUNS.get(field.name, field.name), shown, "", field.text)


def spaces_in(it: type) -> dict[str, type]:
    """The namespaces that the objects of a class have, with their classes."""
    found = {name: space_of(member) for name, member in members_of(it) if isinstance(member, property)}
    return {name: kind for name, kind in sorted(found.items()) if kind is not None}


def space_of(member: property) -> type | None:
    """The class of a namespace that is a property; None if the property is something else."""
    getter: Any = member.fget
    it = vars(import_module(getter.__module__)).get(source.returned_by(getter))
    if not isinstance(it, type) or not it.__module__.startswith(("outlive._kernel.client", "outlive._features")):
        return None
    return it if getter.__name__ not in NOT_NAMESPACES and list(members_of(it)) else None


def given_by(it: type) -> Iterator[type]:
    """Classes of ours that the public methods and fields of a class give, and what derives from them."""
    hints = [source.returned_by(member) for _, member in members_of(it) if not isinstance(member, property)]
    hints += [field.type for field in source.fields_of(it)]
    names = {name: found for each in source.ours(it) for name, found in vars(import_module(each.__module__)).items()}
    for name in source.names_in(hints):
        found = names.get(name)
        if isinstance(found, type) and found.__module__.startswith("outlive."):
            yield found
            heirs: list[type] = [] if inspect.isabstract(found) else found.__subclasses__()
            yield from (names[heir.__name__] for heir in heirs if heir.__name__ in names)
