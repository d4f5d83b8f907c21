"""A tree of runs with its place in the journal: what it has to say next is collected in a draft.

Everything that becomes a fact goes through `record`: the event is sealed into the draft, the run rows follow by the
same fold that `fsck` uses, and large values become blobs of the same change.
"""

from __future__ import annotations

from collections.abc import Callable

from outlive._journal.codec import salt_of, seal
from outlive._journal.event import (
    AnyEvent,
)
from outlive._journal.fold import Fold
from outlive._journal.packing import Packer, mail_mark, tree_mark
from outlive._journal.value import Stored
from outlive._model import Payload
from outlive._model.payload import Blob
from outlive._replay.command import (
    WorkflowSpec,
)
from outlive._replay.execution import Execution
from outlive._runtime.clock import Clock
from outlive._runtime.draft import Draft, Effect
from outlive._runtime.hearing import Hearing
from outlive._runtime.herald import Herald
from outlive._runtime.item import item_of
from outlive._runtime.reporter import NOTABLE


class DraftedRun:
    """One tree, and the next change of its journal."""

    __slots__ = (
        "_blobs",
        "_herald",
        "_journal",
        "_owners",
        "_salt",
        "clock",
        "draft",
        "execution",
        "fold",
        "hearing",
        "in_flight",
        "is_over",
        "lookups",
        "packer",
        "seq",
    )

    def __init__(
        self,
        root_id: str,
        *,
        nonce: int,
        journal: int,
        clock: Clock,
        packer: Packer,
        resolve: Callable[[str, int], WorkflowSpec],
        turns_max: int,
        herald: Herald | None = None,
    ) -> None:
        self.clock = clock
        self.packer = packer
        self._salt = salt_of(nonce)
        self._owners = (tree_mark(nonce), mail_mark(root_id))
        self._journal = journal
        self._blobs: dict[str, bytes] = {}
        self.execution = Execution(
            root_id, resolve=resolve, unpack=self._unpack, unpack_foreign=self._unpack_foreign, turns_max=turns_max
        )
        self.fold = Fold(root_id)
        self.hearing: Hearing | None = None
        """For the observers of its workflows; None if there are none."""
        self._herald = herald
        self.seq = -1
        """The seq of the last event, durable or on its way."""
        self.draft: Draft | None = None
        self.in_flight = 0
        """Changes handed to the committer and not answered."""
        self.lookups = 0
        """Detached runs of which nobody has looked whether they will tell of their end; until then it may not rest."""
        self.is_over = False
        """Nothing can move it here any more: it has ended, is parked, or was let go."""

    @property
    def id(self) -> str:
        """The id of the root run."""
        return self.fold.root_id

    @property
    def journal(self) -> int:
        """The store's handle; 0 until the tree is stored."""
        return self._journal

    def take_draft(self) -> Draft | None:
        """What there is to commit, if anything."""
        draft, self.draft = self.draft, None
        if draft is not None:
            self.in_flight += 1
        return draft

    def committed(self, draft: Draft, journal: int) -> None:
        """A draft has become durable."""
        self.in_flight -= 1
        self._journal = journal
        if self._blobs:
            self._forget_blobs()

    def pack(self, data: bytes, what: str) -> Payload:
        """Store a value with the next change."""
        payload, blob = self.packer.pack(data, what, of=self._owners[0])
        if blob is not None:
            self.open_draft().change.blobs.append(blob)
            self._blobs[blob.id] = blob.data
        return payload

    def store_blobs(self, blobs: list[Blob]) -> None:
        """Blobs that come into being with the next change."""
        if blobs:
            self.open_draft().change.blobs.extend(blobs)
            self._blobs.update((blob.id, blob.data) for blob in blobs)

    def add_blobs(self, blobs: dict[str, bytes]) -> None:
        """The blobs that the journal refers to, read for a replay."""
        self._blobs.update(blobs)

    def _forget_blobs(self) -> None:
        """Keep the blobs of what the run was given and has not looked at; all others are in its variables, or gone."""
        kept = {payload.blob for payload in self.execution.unread()}
        self._blobs = {id: data for id, data in self._blobs.items() if id in kept}

    def add_effect(self, effect: Effect) -> None:
        """Do something once everything said so far is durable."""
        self.open_draft().effects.append(effect)

    def _unpack(self, payload: Payload) -> Stored:
        return self.packer.unpack(payload, self._blobs, owners=self._owners)

    def _unpack_foreign(self, payload: Payload) -> Stored:
        return self.packer.unpack(payload, self._blobs)

    def listen(self, spec: WorkflowSpec) -> None:
        """A run of this workflow is in the tree: its observers hear of it."""
        if spec.audience and self._herald is not None:
            if self.hearing is None:
                self.hearing = Hearing(
                    self.execution, herald=self._herald, now=self.clock.now, open_draft=self.open_draft
                )
            self.execution.listener = self.hearing.moved

    def tell(self, draft: Draft) -> None:
        """A draft is durable: observers may hear of it, once."""
        told, draft.told = draft.told, []
        if told and self._herald is not None:
            self._herald.tell(self.id, told)

    def open_draft(self) -> Draft:
        """The draft of the next change, a new one if there is none."""
        if self.draft is None:
            self.draft = Draft(self._journal, self.seq, is_guarded=self.execution.forgets)
        return self.draft

    def record(self, event: AnyEvent) -> None:
        """Write a fact into the draft, and fold it into the run rows."""
        draft = self.open_draft()
        draft.change.rows.append(seal(event, salt=self._salt, seq=self.seq + 1))
        self.seq += 1
        if self.hearing is not None:
            self.hearing.note(event)
        if self.execution.has_items and (item := item_of(event, self.execution)) is not None:
            draft.change.items.append(item)
        run = self.fold.apply(event)
        if type(event) in NOTABLE:
            draft.notable.append((event, self.fold.runs[event.run]))
        if run is not None:
            draft.runs[run.number] = run
            if run.number == 0:
                self.is_over = not run.owner
