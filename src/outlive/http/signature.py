"""The sender of a webhook, known by a token, or by a signature over the body as it was sent. Pure, and in constant
time.

Two layouts of signatures are read. Standard Webhooks signs the id, the time and the body (headers `webhook-id`,
`webhook-timestamp`, `webhook-signature`); deliveries of Outlive's own are signed so. GitHub signs the body alone
(`x-hub-signature-256`). The receiver says which one counts. If the headers of a request said it, what one layout signs
could be sent as the body of the other one: the id and the time as a part of the body, whenever one likes.

A secret may hold two keys or tokens with a space between them, the old one and the new one: that is how they are
changed without losing a request.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping

from outlive._features.events.signing import (
    ID,
    KEYS_MAX,
    SIGNATURE,
    TIMESTAMP,
    keys_in,
    signatures,
    signed_headers,
)
from outlive._kernel.model.trigger import Layout
from outlive.http.exchange import DIGITS_MAX
from outlive.http.problem import Problem, refusal

__all__ = [
    "ID",
    "WINDOW_SECONDS",
    "Problem",
    "check_signature",
    "check_signed",
    "check_token",
    "signed_headers",
    "token_in",
]

WINDOW_SECONDS = 300
"""How far the time of a signature may be from now."""
GITHUB_SIGNATURE = "x-hub-signature-256"
TOKEN = "x-webhook-token"


def token_in(headers: Mapping[str, str]) -> str:
    """The token that a request has; empty if it has none."""
    scheme, _, bearer = headers.get("authorization", "").partition(" ")
    return bearer.strip() if scheme.lower() == "bearer" else headers.get(TOKEN, "")


def check_token(secret: str, headers: Mapping[str, str]) -> None:
    """See that a request has the token.

    Raises:
        Problem: it has none, or another one.
    """
    given = token_in(headers)
    if not given:
        raise refusal(401, f"give the token: Authorization: Bearer ..., or {TOKEN}")
    fits = [hmac.compare_digest(given.encode("latin-1", "replace"), own.encode()) for own in keys_in(secret)]
    if not any(fits):
        raise refusal(401, "the token is not right")


def check_signed(headers: Mapping[str, str], *, now_seconds: float, layout: Layout = "standard") -> None:
    """See that a request has a signature in this layout, of this time. Whether it fits, only the body tells.

    Raises:
        Problem: it has none, or one that was made too long ago.
    """
    own, other = (SIGNATURE, GITHUB_SIGNATURE) if layout == "standard" else (GITHUB_SIGNATURE, SIGNATURE)
    if own not in headers:
        more = (
            f" ({other} is of another layout: who takes the request says which one counts)" if other in headers else ""
        )
        raise refusal(401, f"the request is not signed: it has no {own}{more}")
    if layout == "standard":
        _check_time(headers, now_seconds)


def check_signature(
    secret: str, headers: Mapping[str, str], body: bytes, *, now_seconds: float, layout: Layout = "standard"
) -> str:
    """See that the body was signed with the key in this layout; an id that is covered by the signature.

    Raises:
        Problem: it was not, or too long ago.
    """
    check_signed(headers, now_seconds=now_seconds, layout=layout)
    if layout == "standard":
        return _check_standard(secret, headers, body)
    return _check_github(secret, headers[GITHUB_SIGNATURE], body)


def _check_time(headers: Mapping[str, str], now_seconds: float) -> None:
    delivery, timestamp = headers.get(ID, ""), headers.get(TIMESTAMP, "")
    if not delivery or not (timestamp.isascii() and timestamp.isdecimal()) or len(timestamp) > DIGITS_MAX:
        raise refusal(401, f"a signed request has the headers {ID} and {TIMESTAMP}, whole seconds since 1970")
    if abs(now_seconds - int(timestamp)) > WINDOW_SECONDS:
        raise refusal(401, f"the time of the signature is more than {WINDOW_SECONDS // 60} minutes away")


def _check_standard(secret: str, headers: Mapping[str, str], body: bytes) -> str:
    delivery, timestamp = headers[ID], headers[TIMESTAMP]
    given = [each.removeprefix("v1,") for each in headers[SIGNATURE].split() if each.startswith("v1,")]
    _check_any(given, signatures(secret, delivery, timestamp, body))
    return delivery


def _check_github(secret: str, signature: str, body: bytes) -> str:
    # The key is the text, also if it begins with `whsec_`: so it signs nothing that the other layout takes.
    own = [hmac.new(key.encode(), body, hashlib.sha256).hexdigest().encode() for key in keys_in(secret)]
    _check_any([signature.removeprefix("sha256=")], own)
    # The id in the header is not signed: a request that was recorded could be sent again under another one.
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


def _check_any(given: list[str], own: list[bytes]) -> None:
    fits = [hmac.compare_digest(each.encode("latin-1", "replace"), key) for each in given[:KEYS_MAX] for key in own]
    if not any(fits):
        raise refusal(401, "the signature does not fit the body and the key")
