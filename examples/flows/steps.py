"""The steps that the flows of this folder use: `outlive flows test *.flow.yaml --app steps.py`.

They stand for the systems of a shop, and remember nothing: what they return depends on what they are given.
"""

from __future__ import annotations

from typing import Any

import outlive

READY_AFTER = 3
"""How often the state of a render job is asked for until it is ready."""
PAGE = 2
"""Rows of a page of the source of the ETL flow."""
SOURCE = [{"id": number, "cents": 100 * number} for number in range(1, 6)]


class CardDeclined(Exception):
    """The bank says no."""


@outlive.step(name="shop.reserve")
async def reserve(order: dict[str, Any]) -> dict[str, Any]:
    """Put the goods of an order aside."""
    return {"id": f"hold-{order['id']}", "cents": order["cents"]}


@outlive.step(name="shop.release")
async def release(hold: str) -> None:
    """Put the goods back."""


@outlive.step(name="shop.charge", raises=(CardDeclined,))
async def charge(hold: str, cents: int) -> dict[str, Any]:
    """Take the money."""
    if cents > 1_000_000:
        raise CardDeclined(f"{cents} is more than the card allows")
    return {"payment": f"pay-{hold}", "cents": cents}


@outlive.step(name="shop.refund")
async def refund(payment: str) -> None:
    """Give the money back."""


@outlive.step(name="shop.ship")
async def ship(order: dict[str, Any]) -> str:
    """Send the goods."""
    if order.get("address") is None:
        raise ValueError("an order without an address cannot be shipped")
    return f"parcel-{order['id']}"


@outlive.step(name="mail.send")
async def send_mail(to: str, text: str) -> str:
    """Send a mail, unless the address cannot be one."""
    if "@" not in to:
        raise ValueError(f"{to!r} is not an address")
    return f"sent to {to}: {text}"


@outlive.step(name="render.state")
async def render_state(job: str, turn: int) -> dict[str, Any]:
    """How far a job is."""
    return {"job": job, "state": "ready" if turn + 1 >= READY_AFTER else "busy"}


@outlive.step(name="source.read")
async def read_page(cursor: int) -> dict[str, Any]:
    """Rows behind a cursor, and the next cursor; none at the end."""
    rows = [row for row in SOURCE if row["id"] > cursor][:PAGE]
    return {"rows": rows, "cursor": rows[-1]["id"] if rows else None}


@outlive.step(name="warehouse.load")
async def load_rows(rows: list[dict[str, Any]]) -> int:
    """Write rows; how many."""
    return len(rows)


@outlive.step(name="agent.think")
async def think(question: str, notes: list[str]) -> dict[str, Any]:
    """What to do next: call a tool, or answer. A real one asks a model."""
    if not notes:
        return {"tool": "look_up", "about": question}
    return {"answer": f"{question}: {notes[-1]}"}


@outlive.step(name="agent.look_up")
async def look_up(about: str) -> str:
    """A tool."""
    return f"found something about {about}"


@outlive.step(name="cluster.deploy")
async def deploy(version: str, percent: int) -> dict[str, Any]:
    """Send a share of the traffic to a version."""
    return {"version": version, "percent": percent}


@outlive.step(name="cluster.errors")
async def error_rate(version: str) -> float:
    """Errors per request of a version."""
    return 0.2 if version.endswith("-bad") else 0.001
