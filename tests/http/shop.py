"""What the tests of the API run."""

from __future__ import annotations

from dataclasses import dataclass

import outlive


@dataclass
class Paid:
    """What a signal brings."""

    cents: int


class Flag:
    """Whether the bank answers."""

    is_up = True


class Refusal(Exception):
    """The bank said no."""


@outlive.step
async def api_charge(cents: int) -> str:
    """Charge a card."""
    if not Flag.is_up:
        raise Refusal(f"no {cents} today")
    return f"{cents} charged"


@outlive.workflow
async def api_order(cents: int, note: str = "") -> dict[str, str]:
    """An order."""
    return {"receipt": await api_charge(cents), "note": note}


@outlive.workflow
async def api_parent(cents: int) -> str:
    """One with a child."""
    return str(await api_order(cents))


@outlive.workflow
async def api_patient() -> str:
    """Waits for a signal."""
    outlive.publish(stage="waiting", password="hunter22")
    return str(await outlive.wait_for_signal("go"))


@outlive.workflow(signals={"paid": Paid})
async def api_declared() -> int:
    """Waits for a signal of a declared type."""
    return (await outlive.wait_for_signal("paid", Paid)).cents


@outlive.workflow
async def api_polite() -> str:
    """Answers one ask, then ends with a signal."""
    question = await anext(outlive.asks("add"))
    if question.body is None:
        question.fail(ValueError("nothing to add"))
    else:
        question.reply(question.body + 1)
    return str(await outlive.wait_for_signal("bye"))


@outlive.workflow
async def api_refund() -> bool:
    """Asks a person."""
    return bool(await outlive.wait_for_approval("refund", title="Refund 5 EUR?", assignees=["ann"]))


@outlive.step
async def api_talk(password: str) -> str:
    """Emits, and fails with the password in its message."""
    for number in range(3):
        outlive.emit("words", {"n": number, "password": password})
    if not Flag.is_up:
        raise Refusal(f"wrong: {password}")
    return "said"


@outlive.workflow
async def api_talker(password: str) -> str:
    """Waits, talks and ends."""
    outlive.publish(stage="waiting")
    await outlive.wait_for_signal("go")
    outlive.publish(stage="talking")
    return await api_talk(password)


@outlive.workflow
async def api_promising() -> int:
    """Waits for a promise that a program outside settles."""
    made = outlive.promise(int)
    outlive.publish(promise=made.id)
    return await made


@outlive.workflow
async def api_promising_twice() -> list[int]:
    """Waits for two promises."""
    made = [outlive.promise(int) for _ in range(2)]
    outlive.publish(promises=[it.id for it in made])
    return [await it for it in made]


@outlive.workflow
async def api_fussy(number: int) -> int:
    """Takes no odd numbers."""
    if number % 2:
        raise Refusal(f"odd: {number}")
    return number
