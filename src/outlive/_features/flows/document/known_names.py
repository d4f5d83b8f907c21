"""The names that `use:` can say: the built-ins, and the steps and workflows that are registered in this process."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import msgspec
from msgspec import UnsetType

from outlive._cel import ANY, MAP, Type, type_of_schema
from outlive._features.flows.built_in import NAMES, find_built_in
from outlive._features.flows.built_in.contract import OneOf
from outlive._kernel.define.registry import REGISTRY
from outlive._kernel.journal.described import describe
from outlive._kernel.values.step_info import StepInfo

DEPTH_MAX = 10
"""How deeply definitions are put into each other."""
PARTS_MAX = 5_000
"""Parts of a schema with its definitions put in."""
_ANY_MAP = MAP()


@dataclass(frozen=True, slots=True)
class Shape:
    """The declaration of a built-in, as it is known before anything runs."""

    arguments: type[msgspec.Struct]
    result: Type = ANY
    deferred: frozenset[str] = frozenset()
    """Arguments that it renders itself, once for each item: they may use `item` and `index`."""
    takes_secrets: bool = False
    """Whether it resolves secrets in the step that uses them; else a reference to one means nothing to it."""
    one_of: OneOf | None = None


@dataclass(frozen=True, slots=True)
class Registered:
    """The declaration of a registered step or workflow, as it is known before anything runs."""

    name: str
    properties: Mapping[str, Any]
    """The JSON Schema of each argument."""
    required: frozenset[str] = frozenset()
    takes_others: bool = False
    """Whether it takes arguments by any name."""
    result: Type = ANY
    whole: Type = _ANY_MAP
    """The type of all that it is given; other than a map for some remote steps."""


@dataclass(frozen=True, slots=True)
class Known:
    """The names that `use:` may have, and what is known of them."""

    built_ins: Mapping[str, Shape] = field(default_factory=dict)
    registered: frozenset[str] = frozenset()
    find: Callable[[str], Registered | None] = lambda name: None
    """Finds the arguments and the result of a registered step or workflow, by its annotations."""

    @property
    def names(self) -> set[str]:
        """All of them."""
        return {*self.built_ins, *self.registered}


def shape_of(built_in: Any) -> Shape:
    """The shape of a built-in."""
    return Shape(
        built_in.arguments,
        built_in.result,
        getattr(built_in, "deferred", frozenset()),
        getattr(built_in, "takes_secrets", False),
        getattr(built_in, "one_of", None),
    )


class _Shapes(Mapping[str, Shape]):
    """The shapes of all built-ins; the module of one is imported when a document uses it."""

    def __getitem__(self, name: str) -> Shape:
        built_in = find_built_in(name)
        if built_in is None:
            raise KeyError(name)
        return shape_of(built_in)

    def __contains__(self, name: object) -> bool:
        return name in NAMES

    def __iter__(self) -> Iterator[str]:
        return iter(NAMES)

    def __len__(self) -> int:
        return len(NAMES)


def known_here() -> Known:
    """The names that are known in this process."""
    workflows = (each.name for each in REGISTRY.workflows())
    names = frozenset((*REGISTRY.step_names(), *workflows, *REGISTRY.remote_steps()))
    return Known(_Shapes(), names, cache(_registered))


class Listed(NamedTuple):
    """The names that live workers of a store run."""

    steps: Sequence[StepInfo] = ()
    workflows: Collection[str] = ()


NOT_LISTED = Listed()


def known_with(listed: Listed) -> Known:
    """The names that are known in this process, and beside them the steps and workflows that workers run; code that is
    here goes before what they say."""
    here, steps = known_here(), {it.name: it for it in listed.steps}

    def find(name: str) -> Registered | None:
        if name in here.registered or name not in steps:
            return here.find(name)
        return _described(steps[name])

    return Known(here.built_ins, here.registered | steps.keys() | {*listed.workflows}, cache(find))


def _described(step: StepInfo) -> Registered | None:
    if step.arguments is None:
        return None if step.result is None else Registered(step.name, {}, takes_others=True, result=_type(step.result))
    found = of_remote(step.name, step.arguments, step.result or {})
    if step.queue or found.whole.kind == "map":
        return found
    return None  # A step of Python takes arguments by name; a later release may describe it in another way.


def _type(schema: Mapping[str, Any]) -> Type:
    return type_of_schema(inlined(schema))


def _registered(name: str) -> Registered | None:
    remote = REGISTRY.find_remote(name)
    if remote is not None:
        taken = describe(remote.spec.signature, remote.spec.fn).arguments
        given = {**taken["properties"]["value"], "$defs": taken.get("$defs", {})}
        terms = remote.terms.schema
        return of_remote(name, given, {} if isinstance(terms, UnsetType) else msgspec.json.decode(terms))
    spec = REGISTRY.find_step(name) or REGISTRY.find_workflow(name)
    if spec is None or getattr(spec.signature, "takes_input", False):
        return None  # A flow looks at its input itself.
    described = describe(spec.signature, spec.fn)
    arguments = inlined(described.arguments)
    return Registered(
        name,
        arguments["properties"],
        frozenset(arguments["required"]),
        arguments["additionalProperties"] is not False,
        _type(described.result),
    )


def of_remote(name: str, given: Mapping[str, Any], result: Mapping[str, Any]) -> Registered:
    """A remote step by the JSON Schemas of what it is given and of its output. Unlike a function it may be given
    anything, and ignores what it does not know unless its schema says otherwise."""
    schema = inlined(given)
    whole, properties, required = type_of_schema(schema), schema.get("properties"), schema.get("required")
    needed = [each for each in required if isinstance(each, str)] if isinstance(required, list) else []
    listed = properties if whole.kind == "map" and isinstance(properties, dict) else None
    named = {name: each for name, each in (listed or {}).items() if isinstance(each, dict)}
    return Registered(
        name,
        named,
        frozenset(each for each in needed if each in named),
        listed is None or schema.get("additionalProperties") is not False,
        _type(result),
        whole,
    )


def inlined(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema with its definitions in place of references to them; one that contains itself can be anything inside,
    and so can what is beyond `PARTS_MAX`: references to references grow faster than the text that has them."""
    found = schema.get("$defs")
    definitions = found if isinstance(found, dict) else {}
    parts = 0

    def walk(value: Any, within: tuple[str, ...]) -> Any:
        nonlocal parts
        if isinstance(value, list):
            return [walk(each, within) for each in value]
        if not isinstance(value, dict):
            return value
        parts += 1
        if parts > PARTS_MAX:
            return {}
        reference = value.get("$ref")
        if isinstance(reference, str):
            name = reference.rpartition("/")[2]
            known = {} if name in within or len(within) > DEPTH_MAX else definitions.get(name, {})
            return walk(known, (*within, name))
        return {key: walk(each, within) for key, each in value.items() if key != "$defs"}

    plain = walk(dict(schema), ())
    return plain if isinstance(plain, dict) else {}
