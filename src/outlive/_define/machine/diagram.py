"""A machine as a picture: Mermaid text.

Where a state goes is known from its definition or from `-> Literal[S.A, S.B]`. A handler that does not say so is read:
the states that its code mentions are drawn with a question mark. That is a guess, and only the picture makes it.
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
    targets = kind.targets
    mark = "" if targets is not None else " : ?"
    known = targets if targets is not None else _mentioned(kind)
    return lines + [f"    {name} --> {other.name}{mark}" for other in plan.states if other.name in known]


def _mentioned(kind: Kind) -> set[str]:
    """The names in the code of its handlers."""
    names: set[str] = set()
    left: list[CodeType] = [fn.__code__ for fn in kind.functions if hasattr(fn, "__code__")]
    while left:
        code = left.pop()
        names.update(code.co_names)
        left += [inner for inner in code.co_consts if isinstance(inner, CodeType)]
    return names
