"""What a program must give, whatever went wrong on the way; where two ways are right, both."""

from __future__ import annotations

from typing import Any

from proof.simulation.program import Program


def is_right(program: Program, result: Any) -> bool:
    """Whether this can be the result of the program."""
    if program and program[-1][0] == "continue":
        # The result of a run is that of its last generation.
        return is_right(program[-1][1], result)
    return (
        isinstance(result, list)
        and len(result) == len(program)
        and all(_fits(order, value) for order, value in zip(program, result, strict=True))
    )


def _fits(order: list[Any], value: Any) -> bool:
    match order:
        case ["work", tag, _, fails, budget, _]:
            return bool(value == (["failed", budget] if fails >= budget else [tag, fails + 1]))
        case ["sleep", _]:
            return bool(value == "slept")
        case ["gather", programs]:
            fits = isinstance(value, list) and len(value) == len(programs)
            return fits and all(is_right(program, part) for program, part in zip(programs, value, strict=True))
        case ["race", *_]:
            return value in ("work", "sleep")
        case ["await", _, count]:
            return bool(value == list(range(count)))
        case ["asked", _, count, _]:
            return bool(value == [2 * number for number in range(count)])
        case ["await_or", *_]:
            return value in (7, "timeout")
        case ["child", program, *_]:
            return is_right(program, value)
        case ["detached", _, program, waits]:
            return is_right(program, value) if waits else bool(value == "started")
        case ["once", tag, _]:
            return value in (tag, "interrupted")
        case ["saga", tag, count, _, breaks]:
            return bool(value == ("undone" if breaks else [f"{tag}/{number}" for number in range(count)]))
        case ["map", tag, count, *_]:
            return bool(value == [f"{tag}/{number}" for number in range(count)])
        case ["timeout", _, program]:
            return bool(value == "late") or is_right(program, value)
        case ["dice", _]:
            return bool(value == "same")
        case ["progress", _, count, _]:
            return bool(value == count)
        case ["limit", tag, *_]:
            # A process that stands still finds both the end of the step and that of its time when it goes on.
            return value in (tag, "too slow")
        case ["approve", _]:
            return bool(value == "ann")
        case ["poison", tag]:
            return bool(value == tag)
        case ["promise", _, millis]:
            # Which of the settlers was first is judged with what they were answered.
            return isinstance(value, int) or str(value).startswith("failed ") or (value == "timeout" and millis > 0)
        case ["stream", _, _, own, count, _, _]:
            return bool(value == [own, count])
        case ["fragile", tag, _]:
            return bool(value == tag)
        case _:
            raise AssertionError(f"no such order: {order}")
