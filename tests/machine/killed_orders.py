"""The same order process as a function, as a machine and as a flow, refused by each of its steps or by none: what
`test_same_ledger` compares, and a job of `tests.machine.killing`.
"""

from __future__ import annotations

import asyncio
import enum
from dataclasses import dataclass
from typing import Any

import outlive
from outlive import flow
from outlive.machine import All
from outlive.types import Workflow
from tests.machine.killing import Runs, ledger

REFUSALS = ["", "reserve", "truck", "label", "charge"]
WHOLE = ["charge", "label", "reserve", "truck"]
"""What a complete order holds."""
PAUSE_SECONDS = 0.01


@dataclass
class Order:
    """Whose it is, and which step refuses it."""

    name: str
    refused_by: str = ""


def enter(order: Order, what: str) -> None:
    """One entry in the ledger, or a refusal."""
    if order.refused_by == what:
        raise ValueError(f"{what} refuses {order.name}")
    ledger().enter(order.name, what, 1)


async def take_back_reserve(order: Order) -> None:
    """Undo."""
    ledger().enter(order.name, "reserve", -1)


async def take_back_truck(order: Order) -> None:
    """Undo."""
    ledger().enter(order.name, "truck", -1)


async def take_back_label(order: Order) -> None:
    """Undo."""
    ledger().enter(order.name, "label", -1)


@outlive.step(undo=take_back_truck)
async def killed_order_truck(order: Order) -> Order:
    """A branch of both."""
    enter(order, "truck")
    return order


@outlive.step(undo=take_back_label)
async def killed_order_label(order: Order) -> Order:
    """Another branch of both."""
    enter(order, "label")
    return order


# -- As a function -----------------------------------------------------------------------------------------------------


@outlive.step(undo=take_back_reserve)
async def killed_order_reserve(order: Order) -> Order:
    """The first."""
    enter(order, "reserve")
    return order


@outlive.step
async def killed_order_charge(order: Order) -> None:
    """The last."""
    enter(order, "charge")


@outlive.workflow
async def killed_order_function(order: Order) -> str:
    """In order, in a saga."""
    async with outlive.saga():
        await killed_order_reserve(order)
        await asyncio.gather(killed_order_truck(order), killed_order_label(order))
        await asyncio.sleep(PAUSE_SECONDS)
        await killed_order_charge(order)
    return "done"


# -- As a machine ------------------------------------------------------------------------------------------------------


class S(enum.Enum):
    """The same."""

    RESERVE = "reserve"
    PACK = "pack"
    COOL = "cool"
    CHARGE = "charge"
    DONE = "done"


machine = outlive.Machine("killed.order", S, data=Order, start=S.RESERVE, exits=[S.DONE])


@machine.state(S.RESERVE, undo=take_back_reserve)
async def reserve(data: Order) -> S:
    """The first."""
    enter(data, "reserve")
    return S.PACK


machine.split(S.PACK, [killed_order_truck, killed_order_label], join=All(then=S.COOL))
machine.timer(S.COOL, PAUSE_SECONDS, then=S.CHARGE)


@machine.state(S.CHARGE)
async def charge(data: Order) -> S:
    """The last."""
    enter(data, "charge")
    return S.DONE


# -- As a flow ---------------------------------------------------------------------------------------------------------

document = flow.parse("""
name: killed-order
steps:
  reserve: { use: killed_order_reserve, with: { order: "${{ input }}" } }
  truck: { use: killed_order_truck, with: { order: "${{ steps.reserve }}" } }
  label: { use: killed_order_label, with: { order: "${{ steps.reserve }}" } }
  cool: { use: sleep, with: { seconds: 10ms }, after: [truck, label] }
  charge: { use: killed_order_charge, with: { order: "${{ input }}" }, after: [cool] }
output: "${{ steps.charge == null ? 'done' : 'charged twice' }}"
""")

FORMS: dict[str, Workflow[..., Any]] = {"function": killed_order_function, "machine": machine, "flow": document}


def runs(trial: str) -> Runs:
    """See `tests.machine.killing`."""
    orders = [(form, Order(f"{trial}-{form}-{refusal}", refusal)) for form in FORMS for refusal in REFUSALS]
    return [(FORMS[form], order, order.name) for form, order in orders]
