"""Runs and journals as people may see them: readable, and without the fields that an engine redacts.

What is hidden in one event is blacked out wherever it is repeated, in the failure of the run too. So a whole journal is
looked at to show any part of it; what was found there is kept for the journals that people looked at last.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import msgspec

from outlive._kernel.client.access import Access
from outlive._kernel.define.own import family_of
from outlive._kernel.journal.codec import Row, open_rows
from outlive._kernel.journal.event import AnyEvent, payloads_of
from outlive._kernel.journal.readable import public_event, public_failure, public_of
from outlive._kernel.journal.redaction import Redaction, RowNames, Unpack, black_out
from outlive._kernel.model import Failure, Payload, Run
from outlive.errors import OutliveError, UnreadableError
from outlive.errors.program import WorkflowNotFoundError

T = TypeVar("T")
KNOWN_MAX = 256
"""The number of journals whose secrets are remembered."""
KNOWN_CHARACTERS_MAX = 8_000_000
"""How much of it is kept; all of the journal that was looked at last, however much that is."""
EVENTS_AT_ONCE = 100
"""How many events of a journal are looked at, with everything they hold, before others are read."""
PORTION_BYTES = 1024 * 1024
"""How much they hold together, as it is stored, unless it is one event: a journal may hold more than fits into memory,
and other requests wait while a portion is looked at."""
CUT_CHARACTERS = 20
"""At least so much of a value is repeated where it is cut."""
HIDDEN = "[redacted: the journal, which says what may be shown, cannot be read]"


def portions_of(events: Sequence[AnyEvent]) -> Iterator[slice]:
    """The parts of a journal that are looked at one after the other, with everything they hold."""
    begin = size = 0
    for at, event in enumerate(events):
        own = sum(stored_size(payload) for payload in payloads_of(event))
        if at > begin and (at - begin == EVENTS_AT_ONCE or size + own > PORTION_BYTES):
            yield slice(begin, at)
            begin, size = at, 0
        size += own
    if begin < len(events):
        yield slice(begin, len(events))


def stored_size(payload: Payload) -> int:
    """How many bytes a payload has as it is stored."""
    return payload.size or len(payload.data) or (0 if payload.v is msgspec.UNSET else len(bytes(payload.v)))


class KnownSecrets:
    """The texts of one journal that are not to be seen, as far as it was looked at."""

    __slots__ = ("__weakref__", "characters", "position", "texts")

    def __init__(self) -> None:
        self.position = -1
        """The last event that was looked at."""
        self.texts: set[str] = set()
        self.characters = 0

    def add(self, texts: set[str], position: int) -> None:
        """These secrets are in the journal up to a position, with all that were known."""
        self.characters += sum(len(text) for text in texts - self.texts)
        self.texts |= texts
        self.position = max(self.position, position)


class Shown:
    """Turns what is stored into what is shown."""

    def __init__(self, access: Access, redaction: Redaction) -> None:
        self._access = access
        self._redaction = redaction
        self._known: WeakValueDictionary[tuple[int, int], KnownSecrets] = WeakValueDictionary()
        """By journal and nonce: another run may get the number of a journal that was deleted. A reader that follows a
        run holds its own, so two readers of a journal share one, and none has to look at its events again."""
        self._kept: OrderedDict[tuple[int, int], KnownSecrets] = OrderedDict()
        """The secrets of the journals that people looked at last."""

    @property
    def hides(self) -> bool:
        """Whether there is anything that people may not see."""
        return bool(self._redaction)

    async def run(self, run: Run) -> Run:
        """A run whose failure and reason hide what the engine redacts. See `runs`."""
        return (await self.runs([run]))[0]

    async def runs(self, runs: Iterable[Run]) -> list[Run]:
        """Runs whose failures and reasons hide what the engine redacts, also where they repeat an argument.

        Which texts these are stands in the journal; one that cannot be read shows nothing of the failure.
        """
        if not self._redaction:
            return list(runs)
        secrets: dict[int, set[str] | None] = {}
        found: list[Run] = []
        for run in runs:
            if (run.failure is not None or run.reason) and run.journal not in secrets:
                secrets[run.journal] = await self._secrets_of(run)
            found.append(self._hidden(run, secrets.get(run.journal)))
        return found

    def _hidden(self, run: Run, secrets: set[str] | None) -> Run:
        failure = None if run.failure is None else self.failure(run.failure, secrets)
        return msgspec.structs.replace(run, failure=failure, reason=black_out(run.reason, secrets or set()))

    async def _secrets_of(self, run: Run) -> set[str] | None:
        known = self.known_of(run)
        try:
            async for _ in self.look(run, known):
                pass
        except OutliveError:
            return None
        return known.texts

    async def look(self, run: Run, known: KnownSecrets) -> AsyncIterator[list[tuple[Row, AnyEvent]]]:
        """Look at the events of a journal that were not looked at before, some at a time; these, as they are stored.

        It goes on behind its own last event, and not where another reader of the journal has come to meanwhile: it
        gives every event.
        """
        position = known.position
        rows: Sequence[Row] | None = None
        while rows is None or len(rows) == EVENTS_AT_ONCE:
            rows = await self._access.store.read_journal(run.journal, after=position, limit=EVENTS_AT_ONCE)
            events = list(open_rows(rows, nonce=run.nonce, run_id=run.root_id, first=position + 1))
            for part in portions_of(events):
                own, position = events[part], rows[part][-1][0]
                unpack = await self._unpacker(own)
                known.add(self._redaction.secrets_in(own, unpack=unpack, names=self._names), position)
                self._keep_within_size()
                await asyncio.sleep(0)  # Other requests have their turn.
                yield list(zip(rows[part], own, strict=True))

    def known_of(self, run: Run) -> KnownSecrets:
        """The secrets that are known of the journal of a run; `look` adds to them."""
        journal = (run.journal, run.nonce)
        known = self._known.get(journal)
        if known is None:
            known = self._known[journal] = KnownSecrets()
        self._kept[journal] = known
        self._kept.move_to_end(journal)
        if len(self._kept) > KNOWN_MAX:
            self._kept.popitem(last=False)
        return known

    def _keep_within_size(self) -> None:
        while len(self._kept) > 1 and sum(each.characters for each in self._kept.values()) > KNOWN_CHARACTERS_MAX:
            self._kept.popitem(last=False)

    def plain(self, stored: Any) -> Any:
        """The public form of a stored JSON value, without what the engine redacts."""
        return public_of(self.hide(stored))

    def hide(self, plain: Any) -> Any:
        """A JSON value without what the engine redacts."""
        return self._redaction.hide(plain) if self._redaction else plain

    def about(self, said: T, sent: Any) -> T:
        """A JSON value about another one that a caller has sent, without what the engine redacts in that."""
        if not self._redaction:
            return said
        secrets: set[str] = set()
        self._redaction.hide(sent, secrets)
        for body in sent.values() if isinstance(sent, dict) else ():
            if isinstance(body, dict) and isinstance(body.get("arguments"), list):
                self._redaction.hide_arguments(body["arguments"], None, secrets)
        # A long value is cut where it is repeated.
        cut = {secret[:CUT_CHARACTERS] for secret in secrets if len(secret) > CUT_CHARACTERS}
        return black_out(said, secrets | cut)

    async def secrets_of(self, run_id: str) -> set[str] | None:
        """The texts in the journal of a run that are not to be seen; None if it cannot be read, or is gone."""
        if not self._redaction:
            return set()
        run = (await self._access.store.find_runs([run_id])).get(run_id)
        return None if run is None else await self._secrets_of(run)

    def failure(self, failure: Failure, secrets: set[str] | None) -> Failure:
        """A failure that hides what the engine redacts, also where it repeats one of the `secrets` of its journal; of
        one whose journal cannot be read, nothing is shown but its type."""
        if secrets is None:
            return Failure(type=failure.type, message=HIDDEN)
        return public_failure(self._redaction.hide_failure(failure, secrets))

    async def events(self, events: Sequence[AnyEvent], secrets: set[str] | None = None) -> list[AnyEvent]:
        """A journal with every payload in its public form; one that cannot be read here says so in its place.

        A part of a journal comes with the `secrets` of the events before it, and adds its own.
        """
        unpack = await self._unpacker(events)
        hidden = self._redaction.hide_events(events, unpack=unpack, names=self._names, secrets=secrets)
        return [public_event(event) for event in hidden]

    async def _unpacker(self, events: Sequence[AnyEvent]) -> Unpack:
        blobs = await self._access.blobs(payload for event in events for payload in payloads_of(event))

        def unpack(payload: Payload) -> Any:
            try:
                return msgspec.json.decode(self._access.packer.unpack(payload, blobs))
            except UnreadableError as error:
                return f"[unreadable: {error.reason}]"

        return unpack

    def _names(self, workflow: str, version: int) -> Sequence[str] | RowNames | None:
        registry = self._access.registry
        if (family := family_of(workflow)) is not None:
            return family.row_names(registry, workflow, version)
        try:
            return registry.workflow(workflow, version).signature.names
        except WorkflowNotFoundError:
            return None
