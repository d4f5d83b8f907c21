"""Public names that are loaded when they are first asked for: `import outlive` is quick, and Tab shows all of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def on_demand(module: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a module whose names stand in other modules.

    Args:
        module: its `__name__`.
        homes: the module that each name stands in; a module of its own for a name such as `outlive.limits`.
    """

    def load(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        found = import_module(home)
        if home != f"{module}.{name}":
            found = getattr(found, name)
        setattr(sys.modules[module], name, found)
        return found

    return load
