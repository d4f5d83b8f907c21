"""The values of nodes of a LangGraph graph in a journal: JSON as it is, messages as LangChain writes them, and any
other value packed by LangGraph's serializer.

A packed value names the class that it is decoded to. By itself LangGraph's serializer imports whatever is named and
calls it, functions too; and an operator may set the result of a node (`fork`, `skip`). So only these classes are
decoded: classes that LangGraph lists as safe, and classes that the program has named, by the state of its graph or by
`types=`. A node that returns another one fails, so that the program hears of it before a replay does.
"""

from __future__ import annotations

import base64
import dataclasses
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from langchain_core.messages import BaseMessage, message_to_dict, messages_from_dict
from langgraph.checkpoint.serde.event_hooks import SerdeEvent, register_serde_event_listener
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from pydantic import BaseModel

from outlive.errors import ConfigurationError

KINDS = frozenset({"null", "bytes", "bytearray", "msgpack"})
"""The kinds that LangGraph's serializer writes; it reads more."""
_BLOCKED = frozenset({"msgpack_blocked", "msgpack_method_blocked"})


class GraphValues:
    """Writes the values of a graph as JSON, and reads them back.

    Args:
        types: the classes that packed values may name, besides the classes that LangGraph lists as safe.
    """

    def __init__(self, types: Iterable[type]) -> None:
        self._serde: Any = JsonPlusSerializer(allowed_msgpack_modules=list(types) or None)

    def written(self, value: Any) -> Any:
        """A value as the journal has it.

        Raises:
            ConfigurationError: it could not be read back.
        """
        if value is None or isinstance(value, str | int | float | bool):
            return value
        if isinstance(value, BaseMessage):
            return {"$message": message_to_dict(value)}
        if isinstance(value, list):
            return [self.written(each) for each in value]
        if type(value) is dict and all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {key: self.written(each) for key, each in value.items()}
        kind, data = self._serde.dumps_typed(value)
        self._unpacked(kind, data)
        return {"$packed": [kind, base64.b64encode(data).decode()]}

    def read(self, value: Any) -> Any:
        """The value that was written.

        Raises:
            ConfigurationError: it names a class that it may not.
        """
        if isinstance(value, list):
            return [self.read(each) for each in value]
        if not isinstance(value, dict):
            return value
        if "$message" in value:
            return messages_from_dict([value["$message"]])[0]
        if "$packed" in value:
            kind, data = value["$packed"]
            return self._unpacked(kind, base64.b64decode(data))
        return {key: self.read(each) for key, each in value.items()}

    def _unpacked(self, kind: str, data: bytes) -> Any:
        if kind not in KINDS:
            raise ConfigurationError(f"a value of a node has the form {kind!r}, which nodes do not write")
        with _refusals() as refused:
            value = self._serde.loads_typed((kind, data))
        if refused:
            raise ConfigurationError(
                f"a value of a node names {', '.join(sorted(set(refused)))}, and neither the state of the graph nor "
                "types= of durable() does; values are decoded to classes that the program has named, and to no others"
            )
        return value


@contextmanager
def _refusals() -> Iterator[Sequence[str]]:
    """The names that LangGraph's serializer refuses to decode on this thread."""
    refused: list[str] = []
    own = threading.get_ident()

    def note(event: SerdeEvent) -> None:
        if event["kind"] in _BLOCKED and threading.get_ident() == own:
            refused.append(f"{event['module']}.{event['name']}")

    end = register_serde_event_listener(note)
    try:
        yield refused
    finally:
        end()


def types_in(hints: Iterable[Any]) -> list[type]:
    """The classes in types of states, and in their fields, whose values LangGraph would pack: dataclasses, models of
    pydantic, enums, named tuples."""
    found: dict[int, type] = {}
    seen: dict[int, Any] = {}
    waiting = list(hints)
    while waiting:
        hint = waiting.pop()
        if id(hint) in seen:
            continue
        seen[id(hint)] = hint
        parts = get_args(hint)
        waiting += parts[:1] if get_origin(hint) is Annotated else parts
        if isinstance(hint, type):
            if _is_packed(hint):
                found[id(hint)] = hint
            waiting += _fields_of(hint)
    return list(found.values())


def _is_packed(kind: type) -> bool:
    is_named_tuple = issubclass(kind, tuple) and hasattr(kind, "_asdict")
    return dataclasses.is_dataclass(kind) or issubclass(kind, BaseModel | Enum) or is_named_tuple


def _fields_of(kind: type) -> list[Any]:
    try:
        return list(get_type_hints(kind, include_extras=True).values())
    except (NameError, TypeError, AttributeError):  # A name that only type checkers know.
        return []
