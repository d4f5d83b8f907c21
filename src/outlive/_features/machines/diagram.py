"""Where the arrows of a machine go, and the machine as Mermaid text and as data.

Where a state goes is known from its definition or from `-> Literal[S.A, S.B]`. A handler that does not say so is read:
the states that its code mentions are drawn with a question mark. That is a guess, and only pictures make it.

Mermaid has words of its own, which no state can have as its name there (`note`, `Default`), and takes neither spaces
nor signs. Such a state is drawn by a number, and its name is a label with every sign spelled out: this is text that
users put into a page, so nothing in it may be more than text.
"""

from __future__ import annotations

import re
from types import CodeType

from outlive._features.machines.driver import Plan
from outlive._features.machines.kinds import Kind
from outlive._kernel.model.state_graph import StateBox, StateGraph

_PLAIN = re.compile(r"(?!state_\d)[A-Za-z_][A-Za-z0-9_]*")
_TAKEN = {
    "accdescr",
    "acctitle",
    "class",
    "classdef",
    "click",
    "default",
    "direction",
    "hide",
    "href",
    "note",
    "scale",
    "state",
    "statediagram",
    "style",
}
"""Words that Mermaid does not read as names, in whatever case."""


def mermaid(plan: Plan) -> str:
    """The machine as a Mermaid state diagram."""
    ids = {member.name: _id_of(member.name, number) for number, member in enumerate(plan.states, 1)}
    lines = ["stateDiagram-v2", f"    [*] --> {ids[plan.start.name]}"]
    for name, drawn in ids.items():
        kind = None if name in plan.exits else plan.kinds.get(name)
        word = f" ({kind.word})" if kind is not None and kind.word != "state" else ""
        if word or drawn != name:
            lines.append(f"    {drawn} : {_label(name)}{word}")
        if name in plan.exits:
            lines.append(f"    {drawn} --> [*]")
        lines += [f"    {drawn} --> {ids[to]}{'' if is_known else ' : ?'}" for to, is_known in arrows_of(name, plan)]
    return "\n".join(lines) + "\n"


def _id_of(name: str, number: int) -> str:
    return name if _PLAIN.fullmatch(name) and name.lower() not in _TAKEN else f"state_{number}"


def _label(name: str) -> str:
    printable = "".join(sign if sign.isprintable() else " " for sign in name)
    return re.sub(r"[^A-Za-z0-9_ ]", lambda found: f"#{ord(found[0])};", printable)


def graph_of(plan: Plan) -> StateGraph:
    """The machine as data for pictures."""
    return StateGraph(plan.start.name, tuple(_box_of(member.name, plan) for member in plan.states))


def _box_of(name: str, plan: Plan) -> StateBox:
    arrows = arrows_of(name, plan)
    kind = plan.kinds.get(name)
    word = "exit" if name in plan.exits else "" if kind is None else kind.word
    return StateBox(name, word, tuple(to for to, _ in arrows), tuple(to for to, is_known in arrows if not is_known))


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
