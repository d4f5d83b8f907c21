"""The workflows that the proofs of the HTTP API run: one for each thing that a request can be about."""

from __future__ import annotations

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
