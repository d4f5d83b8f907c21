"""The operations of `outlive check-deploy --server`: open runs as they lie in the store, for code that is to be
deployed.

These are the only operations that hide nothing: code is replayed with what its steps have returned, and with nothing
else. So they are for admins, every answer with journals has a row in the audit log with the ids of the runs, and runs
that have ended are not given out. Answers are large, and packed for clients that can read that.
"""

from __future__ import annotations

import asyncio
import gzip
from textwrap import wrap
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from outlive._features.deploys.open_runs import Journals, OpenRuns, PinnedDocuments
from outlive._kernel.model.given import TEXT_CHARACTERS_MAX
from outlive._kernel.model.id import ID_CHARACTERS_MAX
from outlive.errors.flow import FlowDamagedError
from outlive.http.operation import JSON, Call, Content, operation
from outlive.http.problem import malformed
from outlive.http.wire.page import Key

RUNS_MAX = 50
"""Ids that a user may choose, so many of them, fit into one row of the audit log; longer ones take a few rows."""
PACKING = "gzip"
PACKING_LEVEL = 1
"""Journals repeat themselves: more work makes them hardly smaller."""

KnownId = Annotated[str, Meta(min_length=1, max_length=ID_CHARACTERS_MAX)]
"""The id of a run that a user or Outlive has named."""


class ReadJournals(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which runs."""

    run_ids: Annotated[list[KnownId], Meta(min_length=1, max_length=RUNS_MAX)]
    """Roots of trees; a root that does not exist or has ended is left out."""


class DocumentsQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which page."""

    after: Key | None = None
    """`next` of the page before."""


@operation("deploys.journals", "POST", "/deploys/journals", scope="admin", answers={200: Journals})
async def read_journals(call: Call, body: ReadJournals) -> Content:
    """Journals of open runs with nothing hidden, for `outlive check-deploy`. Up to 50 runs at once."""
    found = await call.view.verbs_of(OpenRuns).journals(body.run_ids)
    given_out = " ".join(it.id for it in found.items)
    for ids in wrap(given_out, TEXT_CHARACTERS_MAX, break_long_words=False, break_on_hyphens=False):
        await call.engine.audit._record("journals.read", reason=ids)
    return await _packed(call, found)


@operation(
    "deploys.documents",
    "GET",
    "/deploys/documents",
    scope="admin",
    raises=(FlowDamagedError,),
    answers={200: PinnedDocuments},
)
async def list_documents(call: Call, query: DocumentsQuery) -> Content:
    """The documents of flows that open runs may be of, in all revisions, for `outlive check-deploy`."""
    after: tuple[str, str] | None = None
    if query.after is not None:
        name, mark, digits = query.after.rpartition("@")
        if not mark:
            raise malformed("after is `next` of the page before")
        after = name, digits
    found = await call.view.verbs_of(OpenRuns).documents(after=after)
    return await _packed(call, found)


async def _packed(call: Call, answer: Any) -> Content:
    body = msgspec.json.encode(answer)
    if PACKING not in call.headers.get("accept-encoding", ""):
        return Content(JSON, body)
    packed = await asyncio.to_thread(gzip.compress, body, PACKING_LEVEL)
    return Content(JSON, packed, {"content-encoding": PACKING, "vary": "accept-encoding"})
