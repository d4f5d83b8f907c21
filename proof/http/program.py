"""The workflows that the proofs of the HTTP API run: one for each thing that a request can be about."""

from __future__ import annotations

from typing import Any, Union

import msgspec

import outlive

FLOW = """
name: proof_flow
input: { order: any }
triggers:
  - event: proof.happened
steps:
  look: { use: noop }
output: "${{ input.order }}"
"""


class Refusal(Exception):
    """What a step fails with."""


@outlive.step(name="proof_double")
async def double(number: int) -> int:
    """A step."""
    return number * 2


@outlive.workflow
async def proof_order(number: int, note: str = "") -> dict[str, int | str]:
    """Ends at once."""
    return {"number": await double(number), "note": note}


@outlive.workflow
async def proof_failing(number: int) -> int:
    """Fails."""
    raise Refusal(f"no {number} today")


@outlive.step(name="proof_refuse")
async def refuse() -> None:
    """Fails."""
    raise Refusal("not today")


@outlive.workflow
async def proof_stepping() -> None:
    """Fails at a step."""
    await refuse()


@outlive.workflow
async def proof_waiting() -> str:
    """Waits for a signal, and shows something meanwhile."""
    outlive.publish(stage="waiting")
    outlive.emit("words", "hello")
    return str(await outlive.wait_for_signal("go"))


@outlive.workflow
async def proof_answering() -> int:
    """Answers asks until the last one."""
    count = 0
    async for ask in outlive.asks("add"):
        count += 1
        ask.reply(count)
        if count == 1_000:
            break
    return count


@outlive.workflow
async def proof_refund() -> bool:
    """Asks a person."""
    return bool(await outlive.wait_for_approval("refund", title="Refund?", assignees=["ann"]))


@outlive.workflow
async def proof_promising() -> int:
    """Waits for a promise, whose id it shows."""
    made = outlive.promise(int)
    outlive.publish(promise=made.id)
    return await made


resize = outlive.remote_step("proof_resize", queue="proof-gpu")
"""A step that workers elsewhere do."""


@outlive.workflow
async def proof_remote(number: int) -> object:
    """Waits for a worker elsewhere."""
    return await resize({"number": number})


@outlive.workflow
async def proof_parent(number: int) -> str:
    """Has a child."""
    return str(await proof_order(number))


@outlive.step(name="proof_try", retry=outlive.Retry(attempts=2, first=3600))
async def unlucky(number: int) -> int:
    """Fails, and is tried again after an hour."""
    raise Refusal(f"no {number} today")


@outlive.workflow
async def proof_unlucky() -> int:
    """Waits for the next attempt of a step."""
    return await unlucky(1)


# -- With types, which values of strangers are held against ------------------------------------------------------------


class And(msgspec.Struct, tag="and"):
    """A rule that refers to itself."""

    left: Union[And, Or, Lit]  # noqa: UP007 (msgspec evaluates it)
    right: Union[And, Or, Lit]  # noqa: UP007


class Or(msgspec.Struct, tag="or"):
    """Another one, with the same fields."""

    left: Union[And, Or, Lit]  # noqa: UP007
    right: Union[And, Or, Lit]  # noqa: UP007


class Lit(msgspec.Struct, tag="lit"):
    """The end of a rule."""

    value: int


class Typed(msgspec.Struct):
    """What hostile values of any length fit."""

    numbers: list[float] = []
    settings: dict[str, Any] | None = None
    rules: list[And | Or | Lit] = []


TYPED_FLOW = """
name: proof_typed_flow
input:
  numbers: { type: array, items: number, default: [] }
  settings: { type: object, additionalProperties: integer, default: {} }
  rules: { type: array, default: [], items: { anyOf: [ { type: object, properties: { left: {} } }, string ] } }
triggers:
  - event: proof.typed
steps:
  look: { use: noop }
"""
"""What they fit, too, until half a million comparisons are made."""


@outlive.workflow(on_event="proof.typed")
async def proof_typed(value: Typed) -> int:
    """Takes one."""
    return len(value.numbers)


@outlive.workflow(signals={"typed": Typed})
async def proof_typed_waiting() -> int:
    """Waits for one."""
    return len((await outlive.wait_for_signal("typed", Typed)).numbers)


@outlive.workflow
async def proof_typed_promising() -> int:
    """Waits for a promise of one, whose id it shows."""
    made = outlive.promise(Typed)
    outlive.publish(promise=made.id)
    return len((await made).numbers)


@outlive.workflow
async def proof_typed_form() -> bool:
    """Asks a person to fill one in."""
    return bool(await outlive.wait_for_approval("typed", form=Typed))


measure = outlive.remote_step("proof_measure", input=int, output=Typed, queue="proof-typed")
"""A step that workers elsewhere do, with a result of this type."""


@outlive.workflow
async def proof_typed_remote(number: int) -> int:
    """Waits for a worker elsewhere."""
    return len((await measure(number)).numbers)
