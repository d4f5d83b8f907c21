"""The filters of runs have one name in Python, over HTTP and on the command line, but for the renames below."""

from __future__ import annotations

from msgspec.structs import fields

from outlive._kernel.client.finding import Filters
from outlive.cli.filters import OPTIONS
from outlive.http.wire.runs import RunsQuery

OVER_HTTP = {"tags": "tag"}
"""A parameter may be given several times, and is named in the singular."""
IN_COMMANDS = {"status": "statuses"}
"""The flags are `--status` and `--tag`; a command gets all values of a flag."""
NOT_IN_THE_TABLE = {"roots_only"}
"""Commands have `--children` instead: a person at a terminal wants the roots."""


def test_the_parameters_of_a_request_are_the_filters_of_the_engine() -> None:
    """A filter that comes to `engine.list` is a parameter of the API too, with its name."""
    wanted = {OVER_HTTP.get(name, name) for name in Filters.__annotations__}

    assert {field.name for field in fields(RunsQuery)} == wanted


def test_the_flags_of_commands_are_the_filters_of_the_engine() -> None:
    """A filter that comes to `engine.list` is a flag too, with its name."""
    wanted = {IN_COMMANDS.get(name, name) for name in Filters.__annotations__.keys() - NOT_IN_THE_TABLE}

    assert OPTIONS.keys() == wanted
