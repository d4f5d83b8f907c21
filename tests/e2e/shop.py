"""What the tests of the dashboard run."""

from __future__ import annotations

import outlive


class Declined(Exception):
    """The bank said no."""


class Bank:
    """Whether the bank takes cards."""

    is_open = True


@outlive.step
async def dash_charge(cents: int) -> str:
    """Charge a card."""
    if not Bank.is_open:
        raise Declined(f"no {cents} today")
    return f"{cents} charged"


@outlive.workflow
async def dash_order(cents: int = 100) -> str:
    """An order."""
    return await dash_charge(cents)


@outlive.workflow
async def dash_patient() -> str:
    """Waits for a signal."""
    return str(await outlive.wait_for_signal("go"))


@outlive.workflow
async def dash_refund() -> bool:
    """Asks a person."""
    return bool(await outlive.wait_for_approval("refund", title="Refund 5 EUR?", assignees=["ann"]))


@outlive.workflow
async def dash_even(number: int) -> int:
    """Takes no odd numbers."""
    if number % 2:
        raise Declined(f"odd: {number}")
    return number
