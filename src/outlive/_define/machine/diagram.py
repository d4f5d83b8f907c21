"""Where the arrows of a machine go, and the machine as Mermaid text.

Where a state goes is known from its definition or from `-> Literal[S.A, S.B]`. A handler that does not say so is read:
the states that its code mentions are drawn with a question mark. That is a guess, and only pictures make it.
"""

from __future__ import annotations

from types import CodeType

from outlive._define.machine.driver import Plan
from outlive._define.machine.kinds import Kind


def mermaid(plan: Plan) -> str:
    """The machine as a Mermaid state diagram."""
    lines = ["stateDiagram-v2", f"    [*] --> {plan.start.name}"]
    for member in plan.states:
        kind = plan.kinds.get(member.name)
        if member.name in plan.exits:
            lines.append(f"    {member.name} --> [*]")
        elif kind is not None:
            lines += _arrows(member.name, kind, plan)
    return "\n".join(lines) + "\n"


def _arrows(name: str, kind: Kind, plan: Plan) -> list[str]:
    lines = [] if kind.word == "state" else [f"    {name} : {name} ({kind.word})"]
    return lines + [f"    {name} --> {to}{'' if is_known else ' : ?'}" for to, is_known in arrows_of(name, plan)]


def arrows_of(name: str, plan: Plan) -> list[tuple[str, bool]]:
    """Where a state goes, and whether that is known or guessed."""
    kind = None if name in plan.exits else plan.kinds.get(name)
    if kind is None:
        return []
    targets = kind.targets
    known = _mentioned(kind) if targets is None else targets
    return [(other.name, targets is not None) for other in plan.states if other.name in known]


def _mentioned(kind: Kind) -> set[str]:
    """The names in the code of its handlers."""
    names: set[str] = set()
    left: list[CodeType] = [fn.__code__ for fn in kind.functions if hasattr(fn, "__code__")]
    while left:
        code = left.pop()
        names.update(code.co_names)
        left += [inner for inner in code.co_consts if isinstance(inner, CodeType)]
    return names
