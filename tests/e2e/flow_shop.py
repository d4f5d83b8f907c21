"""What the tests of flows, machines, approvals and workflows in a browser run."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Literal

import outlive
from outlive import Machine

ORDER = """\
# An order: reserved, approved if it is large, charged, shipped.
name: order
input:
  customer: { type: string, description: "Who buys" }
  cents: { type: integer, minimum: 1, default: 1200 }
  express: { type: boolean, default: false }
steps:
  reserve:
    use: noop
    with: { cents: "${{ input.cents }}" }
  stock:
    use: noop
    with: { what: "${{ input.customer }}" }
  approve:
    use: approval
    if: "${{ input.cents > 1000 }}"
    after: [reserve]
    with: { name: large-order, title: "Release the order of ${{ input.customer }}?" }
  charge:
    use: noop
    after: [approve, reserve]
    with: { cents: "${{ input.cents }}" }
  ship:
    use: noop
    after: [charge, stock]
    with: { express: "${{ input.express }}" }
  notify:
    use: noop
    after: [charge]
    must_run: true
output: "${{ steps.ship }}"
"""


class Ticket(enum.Enum):
    """Where a ticket is."""

    NEW = 1
    TRIAGE = 2
    ROUTE = 3
    WORK = 4
    REVIEW = 5
    CLOSED = 6
    REFUSED = 7


@dataclass
class Case:
    """What a ticket carries."""

    subject: str
    severity: Literal["low", "high"] = "low"
    rounds: int = 0


ticket = Machine("ticket", Ticket, data=Case, start=Ticket.NEW, exits=[Ticket.CLOSED, Ticket.REFUSED])


@ticket.state(Ticket.NEW, to=[Ticket.TRIAGE])
async def receive(case: Case) -> Ticket:
    """Takes it in."""
    return Ticket.TRIAGE


@ticket.workflow(Ticket.TRIAGE, to=[Ticket.ROUTE])
async def triage(case: Case) -> Ticket:
    """Waits for a person."""
    case.severity = await outlive.wait_for_signal("severity")
    return Ticket.ROUTE


@ticket.router(Ticket.ROUTE, to=[Ticket.WORK, Ticket.REFUSED])
def route(case: Case) -> Ticket:
    """Refuses what is not high."""
    return Ticket.WORK if case.severity == "high" else Ticket.REFUSED


@ticket.state(Ticket.WORK, to=[Ticket.REVIEW])
async def work(case: Case) -> Ticket:
    """Works."""
    case.rounds += 1
    return Ticket.REVIEW


@ticket.workflow(Ticket.REVIEW, to=[Ticket.WORK, Ticket.CLOSED])
async def review(case: Case) -> Ticket:
    """Again, or done."""
    return Ticket.CLOSED if await outlive.wait_for_signal("verdict") else Ticket.WORK


@dataclass
class Refund:
    """What a person fills in."""

    cents: int
    reason: Literal["damaged", "late", "other"] = "damaged"
    notify_customer: bool = True


@outlive.workflow(approvals={"refund": Refund})
async def refund(order: str, cents: int = 500) -> str:
    """Asks for a decision with a form."""
    decision = await outlive.wait_for_approval(
        "refund", title=f"Refund {cents / 100:.2f} EUR for {order}?", assignees=["finance"], form=Refund
    )
    return f"{decision.approved} {decision.form.cents if decision.form else 0} {decision.comment}"
