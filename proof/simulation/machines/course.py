"""What must come of a list of legs, whatever went wrong on the way; where several ways are right, all of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from proof.simulation.machines.legs import ATTEMPTS, BRANCHES, UNDOABLE_BRANCHES, Leg, Legs

WANTED = {"split": 3, "any": 1, "quorum": 2, "part": 1}
"""How many branches must succeed."""
UNLUCKY = ("once", "part", "slow")
"""What fails for good when its process dies, or stands still for too long."""


@dataclass(slots=True)
class Group:
    """What is begun side by side: behind the group before it, and before the one behind it."""

    names: set[str]
    may_lack: bool = False
    """Whether some of it may never be begun."""


@dataclass(slots=True)
class Course:
    """The way of one run."""

    groups: list[Group] = field(default_factory=list)
    path: list[str] = field(default_factory=list)
    """Where each transition in the journal goes."""
    fails: bool = False
    """Whether its last leg fails for good."""
    may_fail_at: set[int] = field(default_factory=set)
    """Behind how many transitions it may also fail, if it has bad luck."""


def course_of(legs: Legs) -> Course:
    """The way that legs take, until one fails for good or the exit is reached."""
    course = Course()
    for place, leg in enumerate(legs):
        if leg[0] == "end":
            break
        if leg[0] == "trip":
            # Its transitions are those of another run.
            inner = course_of(leg[2])
            course.groups += inner.groups
            course.may_fail_at |= {len(course.path)} if inner.may_fail_at else set()
        else:
            course.groups += _groups(leg)
        if leg[0] in UNLUCKY:
            course.may_fail_at.add(len(course.path))
        if _fails(leg):
            course.fails = True
            break
        course.path += _path(leg, _state(legs[place + 1]) if (place + 1) % 2 == 0 else "ROUTE")
    return course


def _state(leg: Leg) -> str:
    return str(leg[1] if leg[0] == "end" else leg[0].upper())


def _fails(leg: Leg) -> bool:
    match leg:
        case ["work" | "timer", _, _, fails, *_] | ["book", _, _, _, fails, _]:
            return bool(fails >= ATTEMPTS)
        case ["trip", _, inner]:
            return course_of(inner).fails
        case ["split" | "any" | "quorum" | "part" as kind, _, _, fails]:
            return len(BRANCHES) - sum(fails) < WANTED[kind]
        case _:
            return False


def _groups(leg: Leg) -> list[Group]:
    tag = leg[1]
    match leg:
        case ["work" | "timer" | "fragile" | "once" | "poison" | "slow", *_]:
            return [Group({tag})]
        case ["book" | "loop" | "limited" | "stepped", _, turns, *_]:
            return [Group({f"{tag}/{turn}"}) for turn in range(turns)]
        case ["poll", _, turns, *_]:
            return [Group({f"{tag}/{turn}"}) for turn in range(turns + 1)]
        case ["split" | "any" | "quorum" | "part", *_]:
            return [Group({f"{tag}/{name}" for name in BRANCHES}, may_lack=True)]
        case ["batch", _, count, *_]:
            items = Group({f"{tag}/{number}" for number in range(count)})
            return [Group({f"{tag}/load"}), items, Group({f"{tag}/unload"})]
        case ["ask", *_]:
            return [Group({f"{tag}/first"}), Group({f"{tag}/toll"}, may_lack=True), Group({f"{tag}/last"})]
        case _:
            raise AssertionError(f"no such leg: {leg}")


def _path(leg: Leg, after: str) -> list[str]:
    match leg:
        case ["book" | "loop" | "limited" as kind, _, turns, *_]:
            return [kind.upper()] * (turns - 1) + [after]
        case ["timer", *_]:
            return ["WORK", after]
        case ["split" | "any" | "quorum" | "part", *_]:
            return ["ROUTE"]
        case _:
            return [after]


def is_logged(legs: Legs, log: list[Any]) -> bool:
    """Whether a run that came to its exit can have this log."""
    return len(log) == len(legs) - 1 and all(_fits(leg, gave) for leg, gave in zip(legs, log, strict=False))


def _fits(leg: Leg, gave: Any) -> bool:
    tag = leg[1]
    match leg:
        case ["work" | "timer" | "fragile" | "once" | "poison" | "slow", *_]:
            return bool(gave == tag)
        case ["book" | "loop" | "limited" | "stepped" | "poll", _, turns, *_]:
            return bool(gave == [tag, turns])
        case ["split" | "any" | "quorum" | "part" as kind, _, _, fails]:
            good = [f"{tag}/{name}" for name, is_bad in zip(BRANCHES, fails, strict=True) if not is_bad]
            return set(gave) <= set(good) and len(set(gave)) == len(gave) >= WANTED[kind]
        case ["trip", _, inner]:
            return is_logged(inner, gave)
        case ["batch", _, count, _, bad]:
            return bool(gave == ["failed" if number == bad else f"{tag}/{number}" for number in range(count)])
        case ["ask", _, count, _]:
            first, heard, paid, last = gave
            is_paid = paid in (f"{tag}/toll", "refused")
            return is_paid and [first, heard, last] == [f"{tag}/first", [*range(count)], f"{tag}/last"]
        case _:
            raise AssertionError(f"no such leg: {leg}")


def held(legs: Legs, log: list[Any]) -> set[str]:
    """What a run that came to its exit with this log has and keeps."""
    kept: set[str] = set()
    for leg, gave in zip(legs, log, strict=False):
        match leg:
            case ["book", tag, turns, *_]:
                kept |= {f"{tag}/{turn}" for turn in range(turns)}
            case ["split" | "any" | "quorum" | "part", tag, *_]:
                kept |= set(gave) & {f"{tag}/{name}" for name in UNDOABLE_BRANCHES}
            case ["trip", _, inner]:
                kept |= held(inner, gave)
            case ["ask", tag, *_]:
                kept |= {f"{tag}/first", f"{tag}/last"}
            case _:
                pass
    return kept
