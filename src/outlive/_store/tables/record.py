"""A row that is read by place or by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class TableRecord:
    """One row, in the shape of `asyncpg.Record`."""

    __slots__ = ("_names", "_values")

    def __init__(self, names: dict[str, int], values: tuple[Any, ...]) -> None:
        self._names, self._values = names, values

    def __getitem__(self, key: int | slice | str) -> Any:
        return self._values[self._names[key] if isinstance(key, str) else key]

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __eq__(self, other: object) -> bool:
        if isinstance(other, TableRecord):
            return self._values == other._values
        return self._values == other if isinstance(other, tuple) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._values)

    def __repr__(self) -> str:
        inside = " ".join(f"{name}={value!r}" for name, value in self.items())
        return f"<Record {inside}>"

    def get(self, key: str, default: Any = None, /) -> Any:
        """The value of this column, or `default`."""
        return self._values[self._names[key]] if key in self._names else default

    def keys(self) -> Iterator[str]:
        """The names of the columns."""
        return iter(self._names)

    def values(self) -> Iterator[Any]:
        """The values in the order of the columns."""
        return iter(self._values)

    def items(self) -> Iterator[tuple[str, Any]]:
        """Names and values."""
        return ((name, self._values[place]) for name, place in self._names.items())
