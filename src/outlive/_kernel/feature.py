"""A feature of Outlive: what rides on runs, as schedules, batches and flows do.

A feature stands in one folder of `_features` and declares itself there with one value. The engine, the HTTP API and the
command line walk the list of these values, so that adding a feature or removing one touches nothing else. The kernel
knows no feature: it has the form of a declaration, and the tables that features fill.

This value only names modules, because `outlive --help` walks the list too, and must not import an engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class CliCommand(NamedTuple):
    """One command before it is imported."""

    section: str
    """The section of `outlive --help` that it stands in."""
    promise: str
    """The line of `outlive --help` about it."""
    module: str
    """The module that has it, under the name of its entry with '_' for '-'."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """The declaration of a feature."""

    name: str
    in_engine: str = ""
    """The module whose `IN_ENGINE` says what the feature does in an engine (`InEngine`); empty if it does nothing."""
    operations: tuple[str, ...] = ()
    """The modules with its operations of the HTTP API; importing one declares them."""
    mounts: Mapping[str, str] = field(default_factory=dict)
    """The modules with its ASGI apps, by the first part of the path below which the API has them; an app asks its
    callers for keys of its own. `MOUNT` of a module makes the app of an engine, `limits` and `budgets`."""
    commands: Mapping[str, CliCommand] = field(default_factory=dict)
    """Its commands by their names."""
