"""A flag has the name of the setting that it sets, and not one of its own."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click
import pytest
from click.testing import CliRunner

from outlive.cli import main
from outlive.config.setting import BY_NAME, SETTINGS
from outlive.config.settings import Settings

COMMANDS = ("dev", "serve", "worker")


class Asked(Exception):  # It ends a command that has read its flags.
    """What a command sets."""

    def __init__(self, given: set[str]) -> None:
        super().__init__(given)
        self.given = given


def options_of(name: str) -> list[click.Option]:
    """The options of a command."""
    command = main.get_command(click.Context(main), name)
    assert command is not None
    return [it for it in command.params if isinstance(it, click.Option)]


def sample_of(option: click.Option) -> list[str]:
    """An option with a value that it takes."""
    flag = option.opts[-1]
    if option.is_flag:
        return [flag]
    return [flag, option.type.choices[0] if isinstance(option.type, click.Choice) else "1"]


def set_by(name: str, option: click.Option, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The settings that an option of a command sets."""

    def ask(flags: Mapping[str, Any], **_: Any) -> Settings:
        raise Asked({each for each, value in flags.items() if value is not None})

    monkeypatch.setattr(import_module(f"outlive.cli.{name}"), "settings_with", ask)
    answer = CliRunner().invoke(main, [name, *sample_of(option)])
    return answer.exception.given if isinstance(answer.exception, Asked) else set()


@pytest.mark.parametrize("name", COMMANDS)
def test_flag_that_has_a_setting_carries_its_name(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A person who has read `outlive.toml` can write the flag, and the other way round."""
    found = {option.opts[0]: set_by(name, option, monkeypatch) for option in options_of(name)}
    named = {flag: {BY_NAME[each].flag for each in given} for flag, given in found.items() if given}

    assert named
    assert {flag: flags for flag, flags in named.items() if flags != {flag}} == {}


def test_settings_have_flags_of_their_own() -> None:
    """No two settings of one table are written the same."""
    flags = [(it.path[0], it.flag) for it in SETTINGS]

    assert len(set(flags)) == len(flags)
    assert BY_NAME["server.allowed_hosts"].flag == "--allowed-hosts"
    assert BY_NAME["auth.header"].flag == "--auth-header"
    assert BY_NAME["tracing.enabled"].flag == "--tracing"
