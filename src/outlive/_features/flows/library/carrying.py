"""The documents that the runs of a tree are pinned to: carried with an exported run, so that it goes on elsewhere.

A document that came with a run is known to the workers of the store, and starts nothing: no flow there means it.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from outlive._features.flows.library.library import Library
from outlive._features.flows.library.records import DOCUMENT_CELLS, StoredDocument, document_in, hash_of
from outlive._kernel.model import Run
from outlive._kernel.model.run import HASHES_FROM
from outlive._kernel.store.contract import Store
from outlive.errors import OutliveError
from outlive.errors.store import HistoryFormatError


class CarriedDocument(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A document of a flow, as a file has it."""

    name: str
    canonical: str
    """The JSON whose hash the runs are pinned to."""
    text: str = ""
    """The text that its author wrote."""


async def documents_of(store: Store, runs: Iterable[Run]) -> list[CarriedDocument]:
    """The documents that runs are pinned to and that their store has; one that a program has loaded is not there."""
    pinned = {run.version: run.workflow for run in runs if run.version >= HASHES_FROM}
    found = []
    for version, name in sorted(pinned.items()):
        digits = hash_of(version)
        document = document_in(digits, await store.read_cell(DOCUMENT_CELLS + digits))
        if document is not None:
            found.append(CarriedDocument(name=name, canonical=document.canonical.decode(), text=document.text))
    return found


async def bring_documents(library: Library, documents: Iterable[CarriedDocument], *, source: str) -> None:
    """Let the workers of a library have documents for the runs that are pinned to them.

    Raises:
        HistoryFormatError: one is not a document.
    """
    from outlive._features.flows.document.model import from_canonical
    from outlive._features.flows.document.model import hash_of as hash_of_document

    for each in documents:
        try:
            document = from_canonical(each.canonical.encode())
            digits = hash_of_document(document)
        except (OutliveError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise HistoryFormatError(source, 1, f"its document of flow {each.name} cannot be read: {error}") from error
        if document.name != each.name:
            raise HistoryFormatError(source, 1, f"its document of flow {each.name} is that of {document.name}")
        await library.put_document(each.name, digits, StoredDocument(each.canonical.encode(), each.text))
        await library.bring(each.name, digits)
