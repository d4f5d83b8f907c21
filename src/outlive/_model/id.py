"""Run ids: what a user may choose, and how the ids of children are made from them."""

from __future__ import annotations

import re

from outlive.errors import InvalidRunIdError

RUN_ID_LENGTH_MAX = 128
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}")


def check_run_id(run_id: object) -> str:
    """Give the id back if a user may choose it; ids appear in URLs, file names and logs."""
    if not isinstance(run_id, str) or _RUN_ID.fullmatch(run_id) is None:
        raise InvalidRunIdError(run_id)
    return run_id


def child_id(root_id: str, number: int) -> str:
    """The id of a run inside the tree of `root_id`; '~' keeps it apart from every id a user may choose."""
    return root_id if number == 0 else f"{root_id}~{number}"
