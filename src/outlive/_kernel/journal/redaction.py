"""Redaction: which fields of a journal people do not see.

A run must see its real values again after a crash, so the journal holds them, and hiding is for reading. A redaction is
a list of fields. A field is a name, or several with dots for one inside the other: `password` is every field of this
name, `card.number` every `number` directly in a `card`; `*` stands for anything in a name (`*_token`, `card.*`). Upper
and lower case are the same. Lists in between do not count; parameters of workflows and names of signals do. Whatever
stands in such a field is shown as `[redacted]`, whole. Text that is JSON is looked into: models of language write the
arguments of their tools so.

Exceptions are free text. The attributes of a failure are fields; what is found in hidden fields of the same journal or
of the failure itself is also blacked out in its messages, arguments, notes and tracebacks, if it is so long that
it cannot stand there by chance. Text that shows a secret which no field holds is not recognised.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import translate
from typing import Any, TypeVar

import msgspec

from outlive._kernel.journal.event import (
    AnyEvent,
    AskAnswered,
    AskReceived,
    MessageSetAside,
    RunCreated,
    SignalReceived,
    SnapshotTaken,
    payload_fields,
)
from outlive._kernel.model import Failure, Payload, given
from outlive.errors import ConfigurationError

HIDDEN = "[redacted]"
SECRET_CHARACTERS_MIN = 4
"""Shorter texts and numbers are not looked for in messages: they are everywhere."""

_OPENING = frozenset("{[")

T = TypeVar("T")
Unpack = Callable[[Payload], Any]


@dataclass(frozen=True, slots=True)
class RowNames:
    """The workflow runs a chunk of a batch: each of its rows holds the arguments of an item with such parameters."""

    names: Sequence[str] | None


Names = Callable[[str, int], Sequence[str] | RowNames | None]
"""The names of the parameters of a workflow, by its name and version; None if they are not known here."""


class Redaction:
    """Fields whose values are not for people."""

    def __init__(self, fields: Iterable[str] = (), *, refuses_plain: bool = False) -> None:
        """`refuses_plain`: values are encrypted, so that one which is JSON already is none that may be believed."""
        self._refuses_plain = refuses_plain
        self.fields = tuple(given.texts("Engine", "redact", fields, like="password"))
        self._patterns = [_pattern(field) for field in self.fields]

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def hide(self, plain: Any, secrets: set[str] | None = None) -> Any:
        """A JSON value without what is not to be seen; the texts that were hidden are added to `secrets`."""
        return self._hide(plain, (), set() if secrets is None else secrets)

    def hide_failure(self, failure: Failure, secrets: set[str] | None = None) -> Failure:
        """A failure without what is not to be seen."""
        if not self:
            return failure
        secrets = set(secrets or ())
        chain = list(_chain(failure))
        attributes = [self.hide(part.attributes, secrets) for part in chain]
        hidden: Failure | None = None
        for part, shown in zip(reversed(chain), reversed(attributes), strict=True):
            hidden = msgspec.structs.replace(
                part,
                message=black_out(part.message, secrets),
                args=black_out(self.hide(part.args, secrets), secrets),
                attributes=black_out(shown, secrets),
                notes=tuple(black_out(list(part.notes), secrets)),
                traceback=black_out(part.traceback, secrets),
                cause=hidden,
            )
        assert hidden is not None
        return hidden

    def hide_events(
        self, events: Sequence[AnyEvent], *, unpack: Unpack, names: Names, secrets: set[str] | None = None
    ) -> list[AnyEvent]:
        """A journal for people: every payload as the JSON it stands for, without what is not to be seen.

        `unpack` gives the JSON value of a payload. Positional arguments of a workflow that is not known here have no
        names, and are hidden unless they are objects. `secrets` are the secret texts in earlier events of this journal;
        this call adds those in `events`.
        """
        secrets = set() if secrets is None else secrets
        shown = [self._hide_payloads(event, unpack, names, secrets) for event in events]
        if not self:
            return shown
        # Twice, because an exception may tell what only a later value shows to be a secret.
        return [self._hide_texts(event, secrets) for event in shown]

    def secrets_in(self, events: Iterable[AnyEvent], *, unpack: Unpack, names: Names) -> set[str]:
        """The texts in a journal that are not to be seen, wherever they are repeated."""
        secrets: set[str] = set()
        for event in events:
            self._hide_payloads(event, unpack, names, secrets)
        return secrets

    def _hide_payloads(self, event: AnyEvent, unpack: Unpack, names: Names, secrets: set[str]) -> AnyEvent:
        changed: dict[str, Any] = {}
        if isinstance(event, SnapshotTaken):
            changed["created"] = self._hide_payloads(event.created, unpack, names, secrets)
            for field, messages in (("signals", event.signals), ("asks", event.asks), ("set_aside", event.set_aside)):
                changed[field] = tuple(self._hide_payloads(each, unpack, names, secrets) for each in messages)
        if isinstance(event, RunCreated) and event.headers:
            changed["headers"] = self.hide(event.headers, secrets)
        for field in payload_fields(type(event)):
            payload = getattr(event, field)
            # Where nothing is hidden, what is JSON already stays as it is: most of a long journal.
            is_read = self._patterns or self._refuses_plain
            if isinstance(payload, Payload) and (is_read or payload.v is msgspec.UNSET):
                plain = unpack(payload)
                if isinstance(event, RunCreated) and field == "input":
                    plain = self.hide_arguments(plain, names(event.workflow, event.version), secrets)
                elif isinstance(event, SignalReceived | AskReceived | AskAnswered | MessageSetAside):
                    plain = self._hide_field(event.name, plain, (), secrets)
                else:
                    plain = self.hide(plain, secrets)
                changed[field] = Payload(v=msgspec.Raw(msgspec.json.encode(plain)))
        return msgspec.structs.replace(event, **changed) if changed else event

    def hide_arguments(self, plain: Any, names: Sequence[str] | RowNames | None, secrets: set[str]) -> Any:
        """The arguments of a call without what is not to be seen, by the names of its parameters."""
        if isinstance(names, RowNames):
            if not isinstance(plain, list):
                return plain  # It could not be read, and says so.
            first, rows = plain
            return [first, [self.hide_arguments(row, names.names, secrets) for row in rows]]
        if isinstance(plain, dict) and plain.keys() == {"a", "k"}:
            return {"a": self._hide_positional(plain["a"], names, secrets), "k": self.hide(plain["k"], secrets)}
        return self._hide_positional(plain, names, secrets) if isinstance(plain, list) else plain

    def _hide_positional(self, args: list[Any], names: Sequence[str] | None, secrets: set[str]) -> list[Any]:
        if not self:
            return args
        if names is None:
            return [
                self.hide(each, secrets) if isinstance(each, dict) else _keep_secret(each, secrets) for each in args
            ]
        named = [*names, *[names[-1] if names else ""] * (len(args) - len(names))]
        return [self.hide({name: each}, secrets)[name] for name, each in zip(named, args, strict=False)]

    def _hide_texts(self, event: AnyEvent, secrets: set[str]) -> AnyEvent:
        changed: dict[str, Any] = {}
        if isinstance(event, SnapshotTaken):
            changed["set_aside"] = tuple(self._hide_texts(each, secrets) for each in event.set_aside)
        if (failure := getattr(event, "failure", None)) is not None:
            changed["failure"] = self.hide_failure(failure, secrets)
        if (reason := getattr(event, "reason", "")) != "":
            changed["reason"] = black_out(reason, secrets)
        return msgspec.structs.replace(event, **changed) if changed else event

    def _hide(self, plain: Any, path: tuple[str, ...], secrets: set[str]) -> Any:
        if isinstance(plain, list):
            return [self._hide(each, path, secrets) for each in plain]
        if isinstance(plain, str):
            return self._hide_json(plain, path, secrets)
        if not isinstance(plain, dict):
            return plain
        if plain.keys() == {"$"}:
            return self._hide_tagged(plain["$"], path, secrets)
        return {key: self._hide_field(key, each, path, secrets) for key, each in plain.items()}

    def _hide_json(self, text: str, path: tuple[str, ...], secrets: set[str]) -> str:
        """Text without what is not to be seen, if it is an object or a list of JSON; whole if it can be read in two
        ways, or not to its end."""
        if not self._patterns or text.lstrip()[:1] not in _OPENING:
            return text
        try:
            plain = json.loads(text, object_pairs_hook=_object)
        except json.JSONDecodeError:
            return text
        except (RecursionError, ValueError):
            return HIDDEN
        shown = self._hide(plain, path, secrets)
        return text if shown == plain else json.dumps(shown, ensure_ascii=False)

    def _hide_tagged(self, tagged: Any, path: tuple[str, ...], secrets: set[str]) -> Any:
        """Redact a value that is tagged because it holds more than JSON can: a dict with keys that are not text is a
        list of pairs.

        A typed dict may have the one key `$` as well, with anything behind it.
        """
        if isinstance(tagged, list) and len(tagged) == 2 and tagged[0] == "dict" and _are_pairs(tagged[1]):
            pairs = [[key, self._hide_field(str(key), each, path, secrets)] for key, each in tagged[1]]
            return {"$": ["dict", pairs]}
        return {"$": self._hide(tagged, path, secrets)}

    def _hide_field(self, key: str, value: Any, path: tuple[str, ...], secrets: set[str]) -> Any:
        inside = (*path, key.lower())
        if self._matches(inside):
            return _keep_secret(value, secrets)
        return self._hide(value, inside, secrets)

    def _matches(self, path: tuple[str, ...]) -> bool:
        return any(
            len(pattern) <= len(path)
            and all(part.match(name) for part, name in zip(pattern, path[-len(pattern) :], strict=True))
            for pattern in self._patterns
        )


def _pattern(field: object) -> list[re.Pattern[str]]:
    parts = field.lower().split(".") if isinstance(field, str) else [""]
    if not all(parts):
        raise ConfigurationError(f'redact={field!r} is not a field: use "password", "card.number", "*_token"')
    return [re.compile(translate(part)) for part in parts]


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name comes twice, and only one of the values would be looked at")
    return found


def _are_pairs(body: Any) -> bool:
    return isinstance(body, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in body)


def _chain(failure: Failure | None) -> Iterator[Failure]:
    while failure is not None:
        yield failure
        failure = failure.cause


def _keep_secret(value: Any, secrets: set[str]) -> str:
    secrets.update(text for text in _texts(value) if len(text) >= SECRET_CHARACTERS_MIN and text != HIDDEN)
    return HIDDEN


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from _texts(each)


def black_out(plain: T, secrets: set[str]) -> T:
    """A JSON value without these texts. The longest are removed first, because one may be a part of another."""
    return _replace(plain, sorted(secrets, key=len, reverse=True)) if secrets else plain


def _replace(plain: Any, secrets: list[str]) -> Any:
    if isinstance(plain, str):
        for secret in secrets:
            plain = plain.replace(secret, HIDDEN)
        return plain
    if isinstance(plain, list):
        return [_replace(each, secrets) for each in plain]
    if isinstance(plain, dict):
        return {key: _replace(each, secrets) for key, each in plain.items()}
    return plain
