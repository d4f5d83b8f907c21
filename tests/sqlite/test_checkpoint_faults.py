"""Checkpoints on a disk that fails in the middle of a commit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any


def test_an_append_that_the_disk_cut_short_may_be_repeated(path: Path, spawn: Callable[..., Any]) -> None:
    """It is neither a yes nor a no; repeated, it is there once, unless another program was first."""
    first, second, found, taken = spawn("fail_to_append", path).hear_all()

    assert (first, second) == ("True", "True")
    assert found == "[0, 1]"
    assert taken == "run-2 1"
