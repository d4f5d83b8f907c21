"""Translates the advice of the engine from Python into the words of a shell.

Errors and `why()` name the verb that helps, as a program calls it: `engine.resume('order-7')`. A person who reads that
in a terminal types `outlive runs resume order-7`.
"""

from __future__ import annotations

import ast
import re
import shlex
from itertools import islice

COMMANDS: dict[str, tuple[str, ...]] = {
    "approvals.list": ("approvals list", "--run"),
    "ask": ("ask",),
    "asks.answer": ("ask", "", "", "--key"),
    "audit.verify": ("audit verify",),
    "cancel": ("runs cancel",),
    "fork": ("runs fork",),
    "keys.list": ("keys list",),
    "list": ("runs list",),
    "pause": ("runs pause",),
    "queues.list": ("queues list",),
    "queues.pause": ("queues pause",),
    "queues.resume": ("queues resume",),
    "queues.set": ("queues set",),
    "quotas.set": ("namespaces quota",),
    "resume": ("runs resume",),
    "retry": ("runs retry",),
    "schedules.backfill": ("schedules backfill",),
    "schedules.list": ("schedules list",),
    "schedules.resume": ("schedules resume",),
    "schedules.trigger": ("schedules trigger",),
    "skip_step": ("runs skip",),
    "workflows.list": ("workflows list",),
}
"""By the verb of the engine, the command, and the options that take its arguments by position; '' for a plain one."""
CALL_CHARACTERS_MAX, CALL_ENDS_MAX = 1_000, 8
"""How far the end of a call is looked for: a text may also be what a user's own code said."""
_VERB = re.compile(r"\bengine\.([a-z_]+(?:\.[a-z_]+)?)")


def as_typed(text: str) -> str:
    """The text with commands in the place of the verbs that have one; the rest stays as it is."""
    parts, done = [], 0
    for found in _VERB.finditer(text):
        if found.start() < done or found[1] not in COMMANDS:
            continue
        source = _call_in(text[found.start() :], found.end() - found.start())
        words = [] if source is None else _arguments(source, COMMANDS[found[1]][1:])
        if words is None:
            continue
        command = " ".join(["outlive", COMMANDS[found[1]][0], *words])
        is_plain = source is None or text[: found.start()].endswith("`")
        parts += [text[done : found.start()], command if is_plain else f"`{command}`"]
        done = found.start() + len(source) if source else found.end()
    return "".join([*parts, text[done:]])


def _call_in(text: str, name_end: int) -> str | None:
    """The call at the beginning of a text; None if a verb is only named."""
    if text[name_end : name_end + 1] != "(":
        return None
    near = text[:CALL_CHARACTERS_MAX]
    ends = islice((found.end() for found in re.finditer(r"\)", near)), CALL_ENDS_MAX)
    return next((near[:end] for end in ends if _tree(near[:end]) is not None), None)


def _tree(source: str) -> ast.Call | None:
    try:
        tree = ast.parse(source, mode="eval").body
    except SyntaxError:
        return None
    return tree if isinstance(tree, ast.Call) else None


def _arguments(source: str, options: tuple[str, ...]) -> list[str] | None:
    """The words after the command; None if an argument is nothing that a shell could give."""
    call = _tree(source)
    assert call is not None, f"{source} was found to be a call"
    flags = [*options, *[""] * len(call.args)]
    given = [*zip(flags, call.args, strict=False), *((f"--{it.arg}", it.value) for it in call.keywords)]
    words: list[str] = []
    for flag, value in given:
        match value:
            case ast.Constant(value=bool()):
                words.append(flag)
            case ast.Constant(value=str() | int() as plain):
                words += [flag, shlex.quote(str(plain))]
            case ast.Name(id=name):
                words += [flag, name.upper()]
            case ast.Constant():  # `...`: what a person gives there.
                pass
            case _:
                return None
    return [word for word in words if word]
