"""Tokens with which a page of a browser follows one run."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

import outlive.errors as e
from outlive._features.security.run_tokens import SECONDS_MAX, NewRunToken
from outlive.http.operation import Call, operation
from outlive.http.wire.page import Name


class CreateToken(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A token to be made."""

    stream: Name | None = None
    """The only stream that it is for; null for everything that happens to the run."""
    expires_seconds: Annotated[float, Meta(gt=0, le=SECONDS_MAX)] = 300.0


@operation(
    "runs.create_token",
    "POST",
    "/runs/{run_id}/tokens",
    scope="viewer",
    reach="run",
    answers=201,
    raises=(e.RunNotFoundError,),
)
async def create_token(call: Call, run_id: str, body: CreateToken | None = None) -> NewRunToken:
    """Make a token that a browser may hold: it follows this run for some minutes, and can do nothing else.

    It is for `runs.follow`, `runs.streams` and `runs.follow_stream` of this run, or for one stream of it alone. When it
    has expired, when the key that it was made with is revoked, and when another run takes the id, it is refused, and
    what is followed with it ends. Send it as `Authorization: Bearer ...`, never in an address.
    """
    wanted = body or CreateToken()
    return await call.view.run_tokens.create(
        run_id,
        stream=wanted.stream or "",
        seconds=wanted.expires_seconds,
        by=call.principal.name,
        key=call.principal.key,
    )
