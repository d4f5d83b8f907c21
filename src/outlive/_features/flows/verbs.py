"""`engine.flows`: what people do with the flows in a store."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import msgspec

from outlive._features.flows.library.library import Library, library_of
from outlive._features.flows.library.listed import ListedNames
from outlive._features.flows.library.records import FlowEntry, StoredDraft, StoredRevision, hash_of
from outlive._features.flows.values import Flow, FlowDraft, FlowRevision
from outlive._features.retention.purging import Purging
from outlive._kernel.client.beside import Beside, at_once
from outlive._kernel.client.client import Client
from outlive._kernel.client.handle import RunHandle, StoredRun
from outlive._kernel.client.start_options import StartOptions, start_arguments
from outlive._kernel.model import RunFilter, given
from outlive._kernel.model.instant import instant_of
from outlive._kernel.model.pause import Pause
from outlive._kernel.model.run import UNENDED
from outlive._kernel.values.run import Run
from outlive.errors.flow import FlowDisabledError, FlowInUseError, FlowNotFoundError

if TYPE_CHECKING:
    from outlive._features.flows.document.known_names import Listed
    from outlive._features.flows.document.model import Document
    from outlive._features.flows.flow import FlowWorkflow
    from outlive._features.flows.library.reading import KeptDocument

RUNS_SHOWN_MAX = 5
PURGE_AT_ONCE = 1_000


class StoredFlow(msgspec.Struct, frozen=True, kw_only=True):
    """A document of the library."""

    name: str
    revision: int
    """0 for a draft."""
    hash: str
    text: str
    """The text that its author wrote, with comments."""
    document: Any
    """The document that runs: an `outlive.flow.Document`."""

    def __repr__(self) -> str:
        return f"<StoredFlow {self.name}: {f'revision {self.revision}' if self.revision else 'draft'}, {self.hash}>"


class Flows:
    """The library of flows in the store of an engine."""

    def __init__(self, client: Client, beside: Beside = at_once) -> None:
        self._client = client
        self._beside = beside
        """Documents are read and checked with it."""
        self._access = client.access

    @property
    def _library(self) -> Library:
        return self._client.verbs_of(library_of)

    # -- Changing what is published --------------------------------------------------------------------------

    async def apply(
        self,
        document: str | Path | Document | FlowWorkflow,
        *,
        by: str = "",
        reason: str = "",
        expected: int | None = None,
    ) -> Flow:
        """Check a flow, keep it, and publish it as the next revision of its name; durable when this returns.

        The content that is published already makes no new revision. Runs under way go on with the document that they
        were started with; runs that are started from now on get this one.

        It is checked with the steps of this process, and with the steps that live workers run. A step that neither has
        is not a mistake: its workers may begin later.

        Args:
            document: the text of a document, the path of its file, or a flow that was loaded or built.
            by, reason: who does that and why, for `history`.
            expected: the revision that you have changed, 0 for a new flow; without, whatever is published is replaced.

        Raises:
            FlowError: something is wrong with it; all problems are in the message, with their lines.
            StaleFlowError: another revision was published meanwhile.
        """
        where = "engine.flows.apply"
        listed = await self._client.verbs_of(ListedNames).read()
        name, digits, stored = await self._beside(partial(_kept, where, document, listed=listed))
        by, reason = _said(where, by, reason)
        expected = _number(where, "expected", expected)
        await self._library.put_document(name, digits, stored)
        return _info(name, await self._library.publish(name, digits, by=by, reason=reason, expected=expected))

    async def rollback(
        self, name: str, *, to: int | None = None, by: str = "", reason: str = "", expected: int | None = None
    ) -> Flow:
        """Publish the document of an earlier revision again, as a new revision.

        Args:
            to: the number of that revision; the one before the published one unless given.
            by, reason, expected: as for `apply`.

        Raises:
            FlowNotFoundError, StaleFlowError.
        """
        where = "engine.flows.rollback"
        name, (by, reason) = _name(where, name), _said(where, by, reason)
        expected = _number(where, "expected", expected)
        if to is None:
            to = (await self._library.revision(name)).number - 1
        target = await self._library.revision(name, given.whole(where, "to", to, least=0))
        said = reason or f"rolled back to revision {target.number}"
        entry = await self._library.publish(
            name, target.hash, by=by, reason=said, expected=expected, rolled_back_to=target.number
        )
        return _info(name, entry)

    async def save_draft(
        self,
        document: str | Path | Document | FlowWorkflow,
        *,
        by: str = "",
        reason: str = "",
        expected: int | None = None,
    ) -> Flow:
        """Keep a document as the draft of its flow. Nothing runs it before it is published.

        Args:
            expected: the number of the draft that you have changed, 0 for a new one.

        Raises:
            FlowError: it is not a document. StaleFlowError: another person has saved the draft meanwhile.
        """
        where = "engine.flows.save_draft"
        name, digits, stored = await self._beside(partial(_kept, where, document, checks=False))
        by, reason = _said(where, by, reason)
        expected = _number(where, "expected", expected)
        await self._library.put_document(name, digits, stored)
        return _info(name, await self._library.save_draft(name, digits, by=by, reason=reason, expected=expected))

    async def publish(self, name: str, *, by: str = "", reason: str = "", expected: int | None = None) -> Flow:
        """Check the draft of a flow and publish it.

        Args:
            expected: the revision that it is to replace; the revision that was published when the draft was begun
                unless given, so that a revision which was published since is not lost unseen.

        Raises:
            FlowError, StaleFlowError. FlowNotFoundError: there is no such flow, or it has no draft.
        """
        where = "engine.flows.publish"
        name, (by, reason) = _name(where, name), _said(where, by, reason)
        draft = (await self._library.entry(name)).draft
        if draft is None:
            raise FlowNotFoundError(name, lacks="draft")
        text = (await self._library.document(name, draft.hash)).text
        await self._beside(partial(_kept, where, text, listed=await self._client.verbs_of(ListedNames).read()))
        expected = draft.base if expected is None else _number(where, "expected", expected)
        entry = await self._library.publish(
            name, draft.hash, by=by or draft.by, reason=reason or draft.reason, expected=expected, draft=draft.number
        )
        return _info(name, entry)

    async def discard_draft(self, name: str) -> Flow:
        """Forget the draft of a flow."""
        name = _name("engine.flows.discard_draft", name)
        return _info(name, await self._library.discard_draft(name))

    async def enable(self, name: str) -> Flow:
        """Let a flow start runs again, by name and by its triggers."""
        name = _name("engine.flows.enable", name)
        return _info(name, await self._library.set_enabled(name, enabled=True))

    async def disable(self, name: str, *, by: str = "", reason: str = "") -> Flow:
        """Let a flow start no more runs; its triggers rest. Runs under way go on."""
        where = "engine.flows.disable"
        name, (by, reason) = _name(where, name), _said(where, by, reason)
        return _info(name, await self._library.set_enabled(name, enabled=False, by=by, reason=reason))

    async def delete(
        self,
        name: str,
        *,
        force: bool = False,
        runs: bool = False,
        by: str = "",
        reason: str = "",
        expected: int | None = None,
    ) -> None:
        """Take a flow out of the library. Its runs stay, as they are pinned to their documents.

        Args:
            force: also while runs of it are open; they go on to their ends.
            runs: delete its ended runs as well, with everything of them, as `engine.purge` does.
            by, reason, expected: as for `apply`.

        Raises:
            FlowInUseError: runs of it are open. FlowNotFoundError, StaleFlowError.
        """
        where = "engine.flows.delete"
        name, (by, reason) = _name(where, name), _said(where, by, reason)
        given.flag(where, "force", force)
        given.flag(where, "runs", runs)
        expected = _number(where, "expected", expected)
        await self._library.entry(name)
        store = self._access.store
        is_open = RunFilter(workflow=name, statuses=UNENDED)
        found = await store.list_runs(is_open, limit=RUNS_SHOWN_MAX)
        if found and not force:
            raise FlowInUseError(name, [run.id for run in found])
        await self._library.delete(name, by=by, reason=reason, expected=expected, has_open_runs=bool(found))
        while (
            runs
            and (await self._client.verbs_of(Purging).purge(workflow=name, older_than=0, limit=PURGE_AT_ONCE)).deleted
        ):
            pass

    # -- Starting runs ---------------------------------------------------------------------------------------

    async def _find(self, name: str, *, revision: int | None = None) -> FlowWorkflow:
        """A flow of the library as a workflow, for `engine.start_batch`. Its steps need not be here.

        Raises:
            FlowNotFoundError: there is no such flow, or not this revision of it. FlowDisabledError: it starts no runs.
        """
        from outlive._features.flows.library.startable import LibraryFlow

        name = _name("engine.flows.start", name)
        entry = await self._library.entry(name)
        if entry.disabled is not None:
            raise FlowDisabledError(name, disabled_text(entry.disabled))
        document = (await self.get(name, revision=revision)).document
        return await self._beside(partial(LibraryFlow, document))

    async def start(
        self,
        name: str,
        input: Any = None,
        *,
        vars: Mapping[str, Any] | None = None,  # noqa: A002  # As documents call them.
        overrides: Mapping[str, Any] | None = None,
        revision: int | None = None,
        **options: Unpack[StartOptions],
    ) -> RunHandle[Any]:
        """Start a run of a flow of the library; it is durable when this returns. No code of its steps is needed here.

        Args:
            input: plain JSON data, checked against the `input` of the document.
            vars: values of its variables, but for secrets.
            overrides: changes of its steps for this run, a JSON merge patch for each.
            revision: the published one unless given.
            options: as `engine.start` takes them.

        Raises:
            FlowNotFoundError. FlowDisabledError: it starts no runs. FlowInputError: the input or a variable does not
            fit.
        """
        flow = await self._find(name, revision=revision)
        named = {key: value for key, value in (("vars", vars), ("overrides", overrides)) if value}
        said = start_arguments(name, {**options}, by_name=True)
        arguments = await self._beside(partial(flow.spec.signature.encode, (input,), named))
        run_id = await self._client.start_flow(flow, arguments, **said)
        return StoredRun(self._client, run_id)

    # -- Looking ---------------------------------------------------------------------------------------------

    async def list(self) -> builtins.list[Flow]:
        """Every flow of the library, by name."""
        index = await self._library.index()
        return [_info(name, entry) for name, entry in sorted(index.items()) if entry.deleted is None]

    async def info(self, name: str) -> Flow:
        """One flow of the library; `FlowNotFoundError` if it is not there."""
        name = _name("engine.flows.info", name)
        return _info(name, await self._library.entry(name))

    async def get(self, name: str, *, revision: int | None = None, draft: bool = False) -> StoredFlow:
        """The document of a flow: of the published revision unless another one, or the draft, is asked for.

        Raises:
            FlowNotFoundError: there is no such flow, or not this revision of it.
        """
        where = "engine.flows.get"
        name = _name(where, name)
        if given.flag(where, "draft", draft):
            saved = (await self._library.entry(name)).draft
            if saved is None:
                raise FlowNotFoundError(name, lacks="draft")
            return await self._stored(name, 0, saved.hash)
        found = await self._library.revision(name, _number(where, "revision", revision))
        return await self._stored(name, found.number, found.hash)

    async def history(self, name: str) -> builtins.list[FlowRevision]:
        """The revisions of a flow, the newest first: who published which document, when, and why."""
        name = _name("engine.flows.history", name)
        entry = await self._library.entry(name)
        return [_revision(it) for it in (await self._library.revisions(name, entry))[::-1]]

    async def document_of(self, run: Run) -> tuple[Document, str]:
        """The document that a run is pinned to, and its text.

        Raises:
            FlowDamagedError: it is not in the store: the run is none of a flow, or was started from a file.
        """
        stored = await self._stored(run.workflow, 0, hash_of(run.version))
        return stored.document, stored.text

    async def _stored(self, name: str, revision: int, digits: str) -> StoredFlow:
        from outlive._features.flows.document.model import from_canonical

        kept = await self._library.document(name, digits)
        document = from_canonical(kept.canonical)
        return StoredFlow(name=name, revision=revision, hash=digits, text=kept.text, document=document)


def _kept(where: str, document: object, *, checks: bool = True, listed: Listed | None = None) -> KeptDocument:
    # Imported when a document is given: a program without flows loads nothing of them.
    from outlive._features.flows.library.reading import document_given

    return document_given(where, document, checks=checks, listed=listed).kept()


def _info(name: str, entry: FlowEntry) -> Flow:
    return Flow(
        name=name,
        current=None if entry.current is None else _revision(entry.current),
        is_enabled=entry.disabled is None,
        why_disabled=disabled_text(entry.disabled),
        draft=None if entry.draft is None else _draft(entry.draft),
    )


def _revision(it: StoredRevision) -> FlowRevision:
    return FlowRevision(
        number=it.number,
        hash=it.hash,
        at=instant_of(it.published_at),
        by=it.by,
        reason=it.reason,
        rolled_back_to=it.rolled_back_to,
    )


def _draft(it: StoredDraft) -> FlowDraft:
    return FlowDraft(
        number=it.number, base=it.base, hash=it.hash, at=instant_of(it.saved_at), by=it.by, reason=it.reason
    )


def disabled_text(disabled: Pause | None) -> str:
    """The reason why a flow is disabled, for people: `disabled by ann: the bank is closed`."""
    if disabled is None:
        return ""
    by = f" by {disabled.by}" if disabled.by else ""
    return f"disabled{by}" + (f": {disabled.reason}" if disabled.reason else "")


def _name(where: str, name: object) -> str:
    return given.text(where, "name", name, like="orders")


def _said(where: str, by: object, reason: object) -> tuple[str, str]:
    return (
        given.text(where, "by", by, like="ann", least=0),
        given.text(where, "reason", reason, like="the bank asks for it", least=0),
    )


def _number(where: str, what: str, number: object) -> int | None:
    return None if number is None else given.whole(where, what, number, least=0)
