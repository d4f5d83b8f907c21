"""Declarations of a workflow for a feature, such as its schedules.

The decorator of a workflow takes declarations, and the registry keeps them with the workflow. It knows their form and
nothing else of them: the feature that reads them says how they are checked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from outlive._kernel.replay.command import WorkflowSpec
from outlive.errors import ArgumentTypeError


class Declaration(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a workflow declares."""

    name: str = ""
    """Its own name; that of the workflow if it is empty."""


Check = Callable[[str, WorkflowSpec, Any], list[Any]]
"""Makes declarations of what a decorator was given for a workflow, or refuses it; the text says where it stands."""
_CHECKS: dict[str, Check] = {}


def declare_option(option: str, check: Check) -> None:
    """Let decorators take an option; the module that makes its declarations calls this."""
    _CHECKS[option] = check


def declarations(where: str, spec: WorkflowSpec, option: str, given: object, *, wanted: str) -> list[Any]:
    """The declarations of a workflow.

    Raises:
        ArgumentTypeError: something else was given; `wanted` says what to give.
    """
    if given is None:
        return []
    if option not in _CHECKS:  # No module is loaded that makes any.
        raise ArgumentTypeError(where, option, given, wanted)
    return _CHECKS[option](where, spec, given)
