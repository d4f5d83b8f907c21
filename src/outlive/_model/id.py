"""Run ids and tags: what a user may choose, and how the ids of children are made."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

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


def check_tags(tags: Mapping[Any, Any] | None) -> dict[str, str]:
    """A copy of the tags, if they are text that can be stored.

    Raises:
        TypeError: a name or a value is not text.
        ValueError: it is text that UTF-8 cannot hold.
    """
    for name, value in (tags or {}).items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise TypeError(f"tags are text: {name!r}={value!r}")
        try:
            f"{name}{value}".encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"tags are text that UTF-8 can hold: {name!r}={value!r}") from error
    return dict(tags or {})
