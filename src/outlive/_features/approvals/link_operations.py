"""Links with which a person decides, without a key: a page that says what it does, and a button.

Opening it does nothing. The page has no script and needs none: its button sends a form to the same address.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

import outlive.errors as e
from outlive._kernel.model.approval import AnyApproval
from outlive._kernel.values.approval import NewLink
from outlive.errors.key import LinkRefusedError
from outlive.errors.run import ApprovalNotFoundError
from outlive.http.operation import Call, Content, operation
from outlive.http.plain_page import HTML, page, wants_page
from outlive.http.problem import Problem
from outlive.http.wire.page import Json, Name, Text

RAISES = (LinkRefusedError,)


class CreateLink(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A link to be made."""

    approved: bool
    """Whether it approves, or rejects."""
    by: Name
    """The person whom it is for; the decision has this name."""
    expires_seconds: Annotated[float, Meta(gt=0, le=31_536_000)] = 604_800.0
    request: str | None = None


class DecideByLink(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The form that a person fills in."""

    form: Json = None
    comment: Text = ""


@operation(
    "approvals.create_link",
    "POST",
    "/runs/{run_id}/approvals/{name}/links",
    scope="operator",
    reach="run",
    answers=201,
    raises=(e.RunNotFoundError, ApprovalNotFoundError),
)
async def create_link(call: Call, run_id: str, name: str, body: CreateLink) -> NewLink:
    """Make a link with which a person decides without a key: once, in this way, until it expires.

    A link for another person needs the scope admin: its owner decides under that person's name.
    """
    if body.by != call.principal.name and not (call.principal.names_others or call.principal.may("admin")):
        detail = f"{call.principal.name} cannot make a link with which another person decides"
        raise Problem(403, "forbidden", detail, "Give your own name as `by`, or use a key with the scope admin.")
    return await call.engine.approvals.links.create(
        run_id, name, approved=body.approved, by=body.by, expires=body.expires_seconds, request=body.request
    )


@operation(
    "approvals.show_link",
    "GET",
    "/decide/{token}",
    scope="none",
    reach="nothing",
    prefix="",
    media="text/html",
    raises=RAISES,
    is_page=True,
)
async def show_link(call: Call, token: str) -> Content:
    """The page of a link: what it decides, and a button. Nothing happens, however often it is opened."""
    link = await call.engine.approvals.links.show(token)
    verb = "Approve" if link.approved else "Reject"
    expires = link.expires.strftime("%Y-%m-%d %H:%M UTC")
    says = f"Run {link.run_id}. You decide as {link.by}. This link is valid until {expires}, and once."
    needs_key = link.has_form and link.approved
    form = ["This request has a form; decide with a key."] if needs_key else []
    shown = page(f"{verb}: {link.title or link.name}", says, *form, button="" if needs_key else verb)
    # Without a referrer a browser would send the form from the origin `null`, which is none of ours.
    return Content(HTML, shown, {"referrer-policy": "same-origin"})


async def _check_link(call: Call, token: str) -> None:
    """See that a link can be used: what was sent with another one is not read.

    Raises:
        LinkRefusedError: it cannot.
    """
    await call.engine.approvals.links.show(token)


@operation(
    "approvals.use_link",
    "POST",
    "/decide/{token}",
    scope="none",
    reach="nothing",
    prefix="",
    answers={200: AnyApproval},
    raises=RAISES,
    is_page=True,
    before_body=_check_link,
)
async def use_link(call: Call, token: str, body: DecideByLink | None = None) -> AnyApproval | Content:
    """Decide with a link, once. A browser gets a page that says what was decided."""
    given = body or DecideByLink()
    link = await call.engine.approvals.links.show(token)
    decided = await call.engine.approvals.links.use(token, form=given.form, comment=given.comment)
    if wants_page(call.headers):
        verb = "Approved" if decided.approved else "Rejected"
        says = f"Run {link.run_id} goes on with your decision, {decided.by}. You can close this page."
        return Content(HTML, page(f"{verb}: {link.title or link.name}", says))
    return decided
