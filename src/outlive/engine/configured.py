"""The configuration as an engine takes it: the settings, with the checks that only the rooms below the engine know."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from outlive._kernel.runtime.clock import SystemClock
from outlive.engine.namespace import check_namespace
from outlive.engine.url import leases_for, store_for
from outlive.errors import InvalidSettingsError
from outlive.errors.program import SettingProblem

if TYPE_CHECKING:
    from outlive.config.reading import ServerCheck
    from outlive.config.settings import Given, Settings

# Code that reads files is imported where it is used: most programs give their settings themselves.


def read_configuration(
    *,
    file: str | os.PathLike[str] | None = None,
    flags: Mapping[str, Given] | None = None,
    check_server: ServerCheck | None = None,
) -> Settings:
    """The settings of this process: of the file, of the environment and of flags.

    Args:
        check_server: what checks the settings of a server together, where one is started.

    Raises:
        InvalidSettingsError: it has every mistake, with its place.
    """
    from outlive.config.reading import read_settings

    clock = SystemClock()
    checks = {
        "namespace": check_namespace,
        "store": lambda url: store_for(url, clock=clock.now),
        "worker.lease": lambda lease: leases_for(lease, clock=clock),
    }
    return read_settings(file=file, flags=flags, checks=checks, check_flows=_check_flows, check_server=check_server)


def _check_flows(table: dict[str, Any]) -> Iterable[tuple[tuple[str, ...], str]]:
    from outlive._features.flows.outside.settings import find_problems

    return find_problems(table)


def options_of(file: str | os.PathLike[str] | None, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of an engine with the settings of this process; what a program gives itself wins.

    With a `file`, the flows of this process have the `[flows]` of that file from now on.

    Raises:
        InvalidSettingsError: there is a mistake, or no store is named.
    """
    settings = read_configuration(file=file)
    found = settings.engine_options() | dict(options)
    if "url" not in found:
        where = settings.file or "outlive.toml"
        reason = 'no store is named; write store = "sqlite:orders.db", set OUTLIVE_STORE, or give url='
        raise InvalidSettingsError([SettingProblem(where, "store", reason)])
    if file is not None:
        from outlive._features.flows.outside import settings as of_flows

        profile = os.environ.get("OUTLIVE_PROFILE")
        of_flows.use(of_flows.read(dict(settings.flows), file=settings.file, profile=profile))
    return found
