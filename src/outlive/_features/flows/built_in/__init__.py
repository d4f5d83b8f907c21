"""The names that `use:` can say without code of the user; each module is imported when one of its names is used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from outlive._features.flows.built_in.contract import BuiltIn

_MODULES = {
    "noop": "control",
    "log": "control",
    "sleep": "control",
    "switch": "control",
    "fail": "control",
    "emit": "talking",
    "publish": "talking",
    "signal": "talking",
    "event": "talking",
    "ask": "talking",
    "wait_for_signal": "talking",
    "approval": "talking",
    "start": "runs",
    "flow": "runs",
    "map": "looping",
    "iterate": "looping",
    "http": "http",
    "llm": "llm",
    "mcp": "mcp",
    "shell": "programs",
    "docker": "programs",
    "blob": "blob",
}
"""Which module has which built-in; the module has it in its dict `BUILT_INS`."""

NAMES = tuple(_MODULES)
"""All names of built-ins."""

_loaded: dict[str, BuiltIn] = {}


def find_built_in(name: str) -> BuiltIn | None:
    """The built-in of this name, if there is one."""
    found = _loaded.get(name)
    if found is None and name in _MODULES:
        module = import_module(f"{__name__}.{_MODULES[name]}")
        _loaded.update(cast("dict[str, BuiltIn]", module.BUILT_INS))
        found = _loaded[name]
    return found
