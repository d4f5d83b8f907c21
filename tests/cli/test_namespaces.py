"""`outlive namespaces`, and `--namespace` of every command that takes a store."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import outlive
from outlive.cli import COMMANDS, main


@outlive.workflow
async def kept_for_a_tenant() -> None:
    """Waits."""
    await outlive.wait_for_signal("go")


@pytest.fixture
async def url(tmp_path: Path) -> str:
    """A store with a run of a tenant."""
    url = f"sqlite:{tmp_path / 'shop.db'}"
    async with outlive.Engine(url, worker=False, namespace="acme") as engine:
        await engine.start(kept_for_a_tenant, id="order-1")
    return url


def say(*words: str) -> str:
    """What a command prints that is done."""
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    return done.output


def test_a_quota_is_set_and_shown(url: str) -> None:
    """For one tenant."""
    assert "acme may have 5 open runs" in say("namespaces", "quota", "acme", "--open-runs", "5", "--store", url)
    (found,) = json.loads(say("namespaces", "list", "--json", "--store", url))
    assert found == {
        "namespace": "acme",
        "open_runs": 1,
        "open_runs_max": 5,
        "starts_in_a_minute": None,
        "starts_per_minute_max": None,
    }
    assert "1 of 5" in say("namespaces", "list", "--store", url)


def test_the_tenants_are_those_of_the_store_whatever_tenant_is_configured(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A namespace has no namespaces: an empty list would say that there are no tenants."""
    monkeypatch.setenv("OUTLIVE_STORE", url)
    monkeypatch.setenv("OUTLIVE_NAMESPACE", "acme")
    assert "acme may have 5 open runs" in say("namespaces", "quota", "acme", "--open-runs", "5")
    assert "1 of 5" in say("namespaces", "list")


def test_a_command_looks_into_the_namespace_that_is_named(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By an option, or by the environment beside that of the store."""
    assert "order-1" in say("runs", "list", "--store", url, "--namespace", "acme")
    monkeypatch.setenv("OUTLIVE_STORE", url)
    assert "order-1" in say("runs", "list", "--namespace", "acme")
    monkeypatch.setenv("OUTLIVE_NAMESPACE", "acme")
    assert "order-1" in say("runs", "list")


def test_a_wrong_namespace_exits_with_2(url: str) -> None:
    """A wrong name of a namespace exits with 2 and says which names there can be."""
    done = CliRunner().invoke(main, ["runs", "list", "--store", url, "--namespace", "../etc"])
    assert (done.exit_code, "small letters" in done.output) == (2, True)


@pytest.mark.parametrize("wrong", ["sqlite:", "sqlite:///x.db", "postgresql://[::1/x"])
def test_a_wrong_address_with_a_namespace_exits_with_2(wrong: str) -> None:
    """A wrong address of a store exits with 2 in every command that takes a namespace."""
    for words in (["runs", "list", "--namespace", "acme"], ["namespaces", "quota", "acme"], ["namespaces", "list"]):
        done = CliRunner().invoke(main, [*words, "--store", wrong])
        assert (done.exit_code, "is not a store URL" in done.output) == (2, True), (words, done.output, done.exception)


def test_every_command_with_a_store_takes_a_namespace() -> None:
    """None is forgotten; those about all namespaces of a store have none."""
    without = []
    for name in COMMANDS.keys() - {"namespaces"}:
        command = main.get_command(click.Context(main), name)
        assert command is not None
        every = list(command.commands.values()) if isinstance(command, click.Group) else [command]
        for each in every:
            options = {option for parameter in each.params for option in parameter.opts}
            if "--store" in options and "--namespace" not in options:
                without.append(f"{name} {each.name}")
    assert without == []
