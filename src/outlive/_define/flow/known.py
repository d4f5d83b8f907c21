"""What `use:` can name: the built-ins, and the steps and workflows that are registered in this process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from outlive._define.flow.built_in import NAMES, find_built_in
from outlive._define.flow.expression import ANY, Type
from outlive._define.registry import REGISTRY


@dataclass(frozen=True, slots=True)
class Shape:
    """What is known of a built-in before anything runs."""

    arguments: type[msgspec.Struct]
    result: Type = ANY
    deferred: frozenset[str] = frozenset()
    """Arguments that it renders itself, once for each item: they may use `item` and `index`."""
    takes_secrets: bool = False
    """Whether it resolves secrets in the step that uses them; else a reference to one means nothing to it."""


@dataclass(frozen=True, slots=True)
class Known:
    """The names that `use:` may have, and what is known of them."""

    built_ins: Mapping[str, Shape] = field(default_factory=dict)
    registered: frozenset[str] = frozenset()

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
    """What this process has."""
    workflows = (each.name for each in REGISTRY.workflows())
    return Known(_Shapes(), frozenset((*REGISTRY.step_names(), *workflows)))
