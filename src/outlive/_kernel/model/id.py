"""Run ids: what a user may choose, and how the ids of children are made."""

from __future__ import annotations

import enum
import re

from outlive._kernel.model import given
from outlive.errors import ArgumentTypeError
from outlive.errors.run import InvalidRunIdError

ID_CHARACTERS_MAX = 1_000
"""The longest id that is looked up: users may choose 128 characters, and Outlive adds only a short suffix."""
RESERVED = frozenset({"count", "follow", "stuck"})
"""Words that follow `/runs/` in the addresses of lists of runs: a run with such an id would have no address of its
own."""
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}")
_ROOT_ID = re.compile(r"\w[\w.:@-]*(~(gen|old|chunk)[0-9]+)*", re.ASCII)
"""Ids that users choose, and ids that Outlive makes: for ticks, for events, and for runs that gave their id away."""


def check_run_id(run_id: object) -> str:
    """Give the id back if a user may choose it; ids appear in URLs, file names and logs."""
    plain = run_id.value if isinstance(run_id, enum.Enum) else run_id
    if not isinstance(plain, str) or _RUN_ID.fullmatch(plain) is None or plain in RESERVED:
        raise InvalidRunIdError(run_id)
    return str.__str__(plain)


def known_run_id(where: str, run_id: object, *, name: str = "run_id") -> str:
    """Give the id back if a run may have it, one that a user chose or one that was made for a child."""
    if not isinstance(run_id, str | enum.Enum) and isinstance(own := getattr(run_id, "id", None), str):
        raise ArgumentTypeError(where, name, run_id, f"give the id of the run, and not the run: {own!r}, or run.id")
    return given.text(where, name, run_id, like="order-42", most=ID_CHARACTERS_MAX)


def is_root_id(run_id: str) -> bool:
    """Whether the root of a tree may have this id. That of a child it may not: it would take the child's place."""
    return len(run_id) <= ID_CHARACTERS_MAX and _ROOT_ID.fullmatch(run_id) is not None


def child_id(root_id: str, number: int) -> str:
    """The id of a run inside the tree of `root_id`; '~' keeps it apart from every id a user may choose."""
    return root_id if number == 0 else f"{root_id}~{number}"


def generation_id(run_id: str, number: int) -> str:
    """The id that the first, second, ... generation of a run has when it has gone on as the next one."""
    return f"{run_id}~gen{number}"


def earlier_id(run_id: str, number: int) -> str:
    """The id that the first, second, ... run of an id has when it has made room for another one."""
    return f"{run_id}~old{number}"


def made_room(run_id: str) -> bool:
    """Whether a run has had another id before, which another run has now."""
    return "~old" in run_id
