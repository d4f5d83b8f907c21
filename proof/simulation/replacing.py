"""How a piece of production code is replaced for a while, in this process: see `switches`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def replaced(owner: Any, name: str, new: Any) -> Iterator[None]:
    """Give a class or a module another attribute of this name."""
    old = getattr(owner, name)
    setattr(owner, name, new)
    try:
        yield
    finally:
        setattr(owner, name, old)
