"""The JSON Schemas of the arguments and the result of a workflow, for programs that start it and show it without having
its code.

The schema is that of the public form, which a person or a script writes, and in which results leave. The type of an
argument decodes it as it decodes what a workflow was started with, so what fits the schema can be its input as it is.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from outlive._kernel.journal.arguments import Signature, resolve_hints
from outlive._kernel.journal.form import schema_of
from outlive._kernel.model.state_graph import StateGraph


class Described(msgspec.Struct, frozen=True, omit_defaults=True):
    """One workflow in one version."""

    arguments: dict[str, Any]
    """The schema of an object: the arguments by name, in their order."""
    result: dict[str, Any] = {}
    """The schema of the result; empty if it can be anything."""
    positional: tuple[str, ...] = ()
    """Arguments that can be given by position only."""
    timeout_seconds: float | None = None
    """The timeout of a run, unless its start gives another one."""
    queue: str = ""
    """The name of the queue in which its runs wait, if they do."""
    signals: dict[str, dict[str, Any]] = {}
    """The schemas of the signals that it declares, by name."""
    graph: StateGraph | None = None
    """The states of a machine, for a picture; None for any other workflow."""
    is_flow: bool = False
    """Whether it is a document: its `overrides` change its steps, and who may change what is a matter of who starts."""


def describe(
    signature: Signature,
    fn: Any,
    *,
    timeout_seconds: float | None = None,
    queue: str = "",
    signals: Mapping[str, Any] = MappingProxyType({}),
) -> Described:
    """The schemas of a function, by its annotations, and of its signals; what has none can be anything."""
    hints, parameters = resolve_hints(fn), signature.parameters
    annotations = [hints.get(each.name, Any) for each in parameters]
    *schemas, result = schemas_of([*annotations, hints.get("return", Any)])
    definitions = {name: schema for each in schemas for name, schema in each.pop("$defs", {}).items()}
    named = {each.name: schema for each, schema in zip(parameters, schemas, strict=True) if each.kind not in _VARIOUS}
    named |= signature.schemas
    others = [schema for each, schema in zip(parameters, schemas, strict=True) if each.kind is each.VAR_KEYWORD]
    arguments: dict[str, Any] = {
        "type": "object",
        "properties": named,
        "required": [each.name for each in parameters if each.name in named and each.default is each.empty],
        "additionalProperties": others[0] if others else False,
    }
    used = {"$defs": definitions} if definitions else {}
    return Described(
        arguments=arguments | used,
        result=result,
        positional=tuple(each.name for each in parameters if each.kind is each.POSITIONAL_ONLY),
        timeout_seconds=timeout_seconds,
        queue=queue,
        signals=dict(zip(signals, schemas_of(list(signals.values())), strict=True)),
        is_flow=getattr(signature, "takes_input", False),
    )


_VARIOUS = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def schemas_of(annotations: list[Any]) -> list[dict[str, Any]]:
    """The JSON Schema of each of these types, with the definitions that it refers to; empty if nothing describes it."""
    return [_schema_of(annotation) for annotation in annotations]


def _schema_of(annotation: Any) -> dict[str, Any]:
    try:
        return schema_of(annotation, unknown={})
    except Exception:  # A type that only its own codec understands.
        return {}


def input_of(described: Described, given: dict[str, Any]) -> bytes:
    """Arguments by name as a journal has them."""
    by_place = [given[name] for name in described.positional if name in given]
    by_name = {name: value for name, value in given.items() if name not in described.positional}
    return msgspec.json.encode({"a": by_place, "k": by_name} if by_name else by_place)
