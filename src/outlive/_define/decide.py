"""Names by which a run decides something by itself: what it shows, which way it takes, how it goes on."""

from __future__ import annotations

from typing import Any

from outlive._define.inside import CURRENT_STEP
from outlive._define.step import check_name
from outlive._replay import deciding
from outlive._replay.ask import current_execution
from outlive.errors import NotInRunError


def publish(**fields: Any) -> None:
    """Show something of the run to people: `publish(stage="packing", progress=0.4)`.

    Fields stay until they are published anew. `await engine.get(run_id).published()` reads them back. In a workflow
    each change is a fact in the journal; in a step, from any thread, the latest values win when it publishes faster
    than the store can write.

    Raises:
        NotInRunError: neither a workflow nor a step runs here.
        UnserialisableError: a value has no exact stored form.
    """
    execution = current_execution()
    if execution is not None:
        deciding.publish(execution, fields)
        return
    step = CURRENT_STEP.get(None)
    if step is None:
        raise NotInRunError("publish", "a workflow or a step")
    step.publish(fields)


def patched(name: str) -> bool:
    """Whether to take the new way at a change of the code: `if outlive.patched("two-letters"): ... else: ...`.

    False in a run that had come past this point before the change was deployed, True in every other one; the answer is
    journaled at its first use and stays the same for the rest of the run, in loops and branches too. Outside a run the
    new way is taken.

    Raises:
        DefinitionError: journals cannot use this name.
    """
    execution = current_execution()
    return check_name(name) == name and (execution is None or deciding.patched(execution, name))


__all__ = ["patched", "publish"]
