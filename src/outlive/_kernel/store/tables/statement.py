"""One statement of a step, run as asyncpg would run it, and the rows that it gives."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import apsw

from outlive._kernel.store.tables.guard import StatementGuard
from outlive._kernel.store.tables.parameters import as_parameter
from outlive.errors.store import TransactionRefusedError

_PARAMETER = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|/\*.*?\*/|\$(\d+)""", re.DOTALL)
"""A parameter by number, or something that only looks as if it held one."""
_WORD = re.compile(r"(?:\s|--[^\n]*\n|/\*.*?\*/)*(\w*)", re.DOTALL)
_REACHING = re.compile(r"\b(references|rename\s+to)\W+outlive_", re.IGNORECASE)
"""Clauses about which SQLite does not ask a guard: the table of a foreign key, and the new name of a table."""
_DATA = {"INSERT", "REPLACE", "UPDATE", "DELETE", "WITH", "SELECT", "VALUES"}


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


@dataclass(frozen=True, slots=True)
class StatementResult:
    """The result of a statement."""

    status: str
    records: list[TableRecord]


def run(connection: apsw.Connection, query: str, args: tuple[Any, ...]) -> StatementResult:
    """Run a statement of a step in the transaction that is open.

    Raises:
        TransactionRefusedError: it is not for a step to do this.
        apsw.Error: whatever SQLite says.
    """
    guard = StatementGuard.of(connection)
    if reaching := _REACHING.search(query):
        is_key = reaching[1].lower() == "references"
        raise TransactionRefusedError(
            "a foreign key to tables named outlive_..." if is_key else "a table named outlive_..."
        )
    try:
        with guard.switched_on():
            # Not cached: a statement from the cache was prepared before, and the guard would not be asked.
            cursor = connection.execute(query, bindings_of(query, args), can_cache=False)
            names = _names_of(cursor)
            records = [TableRecord(names, row) for row in cursor.fetchall()]
    except apsw.AuthError as error:
        raise TransactionRefusedError(guard.refusal or str(error)) from error
    return StatementResult(_status_of(query, guard.verb, connection.changes(), len(records)), records)


def bindings_of(query: str, args: tuple[Any, ...]) -> dict[str, Any] | tuple[Any, ...]:
    """The arguments as SQLite binds them: by number where the statement has numbers, else in order."""
    args = tuple(as_parameter(value) for value in args)
    numbers = {int(match[1]) for match in _PARAMETER.finditer(query) if match[1]}
    if not numbers:
        return args
    if max(numbers) != len(args) or 0 in numbers:
        raise apsw.BindingsError(f"the statement has parameters up to ${max(numbers)} and was given {len(args)}")
    return {str(number): value for number, value in enumerate(args, 1)}


def _names_of(cursor: apsw.Cursor) -> dict[str, int]:
    try:
        return {column[0]: place for place, column in enumerate(cursor.get_description())}
    except apsw.ExecutionCompleteError:
        return {}  # There is no row that could want them.


def _status_of(query: str, verb: str, changes: int, rows: int) -> str:
    match = _WORD.match(query)
    word = match[1].upper() if match else ""
    if word not in _DATA:
        return word
    if verb == "INSERT":
        return f"INSERT 0 {changes}"
    return f"{verb or 'SELECT'} {changes if verb else rows}"
