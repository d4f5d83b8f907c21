"""Greetings."""

from __future__ import annotations

from msgspec import Struct

from outlive.http.operation import Call, operation
from outlive.http.wire.page import Done
from tests.house.greetings.verbs import Greeting, Greetings


class AddGreeting(Struct, frozen=True, forbid_unknown_fields=True):
    """A greeting."""

    text: str


class GreetingsList(Struct, frozen=True):
    """Greetings."""

    items: list[Greeting]


@operation("greetings.add", "POST", "/greetings", scope="operator")
async def add_greeting(call: Call, body: AddGreeting) -> Done:
    """Greet the store."""
    await call.view.verbs_of(Greetings).add(body.text)
    return Done(body.text)


@operation("greetings.list", "GET", "/greetings", scope="viewer")
async def list_greetings(call: Call) -> GreetingsList:
    """All greetings."""
    return GreetingsList(await call.view.verbs_of(Greetings).list())
