"""What `use:` can name: the built-ins, and the steps and workflows that are registered in this process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from outlive._define.flow.expression import ANY, Type


@dataclass(frozen=True, slots=True)
class Shape:
    """What is known of a built-in before anything runs."""

    arguments: type[msgspec.Struct]
    result: Type = ANY
    deferred: frozenset[str] = frozenset()
    """Arguments that it renders itself, once for each item: they may use `item` and `index`."""


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
    return Shape(built_in.arguments, built_in.result, getattr(built_in, "deferred", frozenset()))
