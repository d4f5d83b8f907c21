"""`[flows]` of outlive.toml: profiles, routes, and messages that name the file and the key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from outlive import flow
from outlive._features.flows.outside import settings
from outlive._features.flows.outside.settings import Route, Settings, load, read
from outlive.errors.outside import SettingsError

FILE = """
[other]
anything = "belongs to other parts"

[flows]
profile = "dev"
vars = { hook = "https://hooks.example/a" }
secrets = "secrets.toml"

[flows.http]
allow_hosts = ["api.internal"]
allow_networks = ["10.0.0.0/8"]

[flows.shell.report]
argv = ["/usr/bin/report", "--quiet"]

[flows.routes]
"shop.charge" = "bank.charge"

[flows.profiles.dev]
vars = { hook = "http://localhost:1/" }
http = { allow_hosts = ["localhost"] }
routes = { "shop.charge" = "fake.charge", "bank.{name}" = "fake.{name}" }

[flows.profiles.prod.shell.report]
arguments = true
"""

SWEDISH = {"path": "$.order.country", "value": "SE"}


def route(known: Settings, name: str, given: Any) -> Route:
    """The route that a step takes."""
    return next(each for each in known.routes_of(name) if each.fits(given))


def test_nothing_is_allowed_by_default() -> None:
    """No command, no image, no folder, no server; public HTTP only."""
    nothing = read({})

    assert (nothing.shell, nothing.docker, nothing.mcp, nothing.llm) == ({}, {}, {}, {})
    assert (nothing.files.folder, nothing.blobs.folder, nothing.secrets) == (None, None, None)
    assert nothing.fetcher.reach == type(nothing.fetcher.reach)()


def test_a_profile_changes_what_it_names(tmp_path: Path) -> None:
    """Tables are merged, everything else is replaced; another profile leaves it as it is."""
    file = tmp_path / "outlive.toml"
    file.write_text(FILE, "utf-8")

    dev, prod = load(file), load(file, profile="prod")

    assert dev.vars == {"hook": "http://localhost:1/"}
    assert dev.http.allow_hosts == ["localhost"]
    assert dev.http.allow_networks == ["10.0.0.0/8"]
    assert route(dev, "shop.charge", {}).use == "fake.charge"
    assert route(dev, "bank.refund", {}).use == "fake.refund"
    assert prod.vars == {"hook": "https://hooks.example/a"}
    assert route(prod, "shop.charge", {}).use == "bank.charge"
    assert route(prod, "bank.refund", {}).use == "bank.refund"
    assert prod.shell["report"].argv == ["/usr/bin/report", "--quiet"]
    assert (prod.shell["report"].arguments, dev.shell["report"].arguments) == (True, False)


def test_the_first_route_whose_conditions_hold_is_taken() -> None:
    """The first route whose conditions hold is taken, with its params; without one the name stands for itself."""
    table = {
        "routes": {
            "pay": [
                {
                    "use": "swish.pay",
                    "conditions": [{"path": "$.order.country", "value": "SE"}],
                    "params": {"fast": True},
                },
                {"use": "card.pay", "conditions": [{"path": "lines.0.count", "value": 1}]},
            ],
            "/python/{component}": "{component}",
        }
    }
    known = read(table)

    taken = route(known, "pay", {"order": {"country": "SE"}})
    assert (taken.use, taken.params) == ("swish.pay", {"fast": True})
    assert route(known, "pay", {"lines": [{"count": 1}]}).use == "card.pay"
    assert route(known, "pay", {"lines": [{"count": True}], "order": None}).use == "pay"
    assert route(known, "pay", "text").use == "pay"
    assert route(known, "/python/udf", {}).use == "udf"


@pytest.mark.parametrize(
    ("table", "complaint"),
    [
        ({"htp": {}}, r"outlive\.toml: flows: Object contains unknown field `htp`"),
        ({"http": {"allow_host": []}}, r"flows\.http: .*unknown field `allow_host`"),
        ({"http": {"allow_hosts": "x"}}, r"flows\.http\.allow_hosts: Expected `array`"),
        ({"http": {"allow_networks": ["10.0.0.1/8"]}}, r"flows\.http\.allow_networks\[0\]: .*host bits"),
        ({"shell": {"x": {"argv": []}}}, r"flows\.shell\[...\]\.argv: Expected `array` of length >= 1"),
        ({"shell": {"x": "ls -l"}}, r"flows\.shell\[...\]: Expected `object`"),
        ({"docker": {"x": {}}}, r"flows\.docker\[...\]: .*required field `image`"),
        ({"mcp": {"x": {}}}, r"flows\.mcp\.x: give either url or argv"),
        ({"mcp": {"x": {"url": "u", "argv": ["a"]}}}, r"flows\.mcp\.x: give either url or argv"),
        ({"routes": {"a.{x}.{x}": "b"}}, "it has the same place twice"),
        ({"profile": "prod"}, r"flows\.profiles\.prod: there is no such profile; it has none"),
        ({"profiles": {"prod": {"htp": {}}}}, r"flows\.profiles\.prod: .*unknown field `htp`"),
        ({"profiles": {"prod": {"http": {"allow_networks": ["x"]}}}}, r"flows\.profiles\.prod\.http\.allow_networks"),
    ],
)
def test_a_mistake_names_the_file_and_the_key(table: Any, complaint: str) -> None:
    """A mistake in the settings is named with file and key, even in a profile that is not used here."""
    with pytest.raises(SettingsError, match=complaint):
        read(table)


def test_settings_for_a_while() -> None:
    """For tests of users; a mistake is one as in a file."""
    with flow.using({"vars": {"a": 2}}):
        assert settings.current().vars == {"a": 2}
    with pytest.raises(SettingsError, match=r"outlive\.flow\.using: flows: .*`htp`"), flow.using({"htp": 1}):
        pass


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    """Is named."""
    file = tmp_path / "outlive.toml"
    with pytest.raises(SettingsError, match=r"outlive\.toml: .*No such file"):
        load(file)
    file.write_text("[flows\n", "utf-8")
    with pytest.raises(SettingsError, match=r"outlive\.toml: .*line 1"):
        load(file)


def test_the_settings_of_a_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file of the working folder, or the named one, with the named profile."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OUTLIVE_CONFIG", raising=False)
    monkeypatch.delenv("OUTLIVE_PROFILE", raising=False)
    assert settings.of_process() == Settings()
    (tmp_path / "outlive.toml").write_text(FILE, "utf-8")
    assert settings.of_process().vars == {"hook": "http://localhost:1/"}
    monkeypatch.setenv("OUTLIVE_PROFILE", "prod")
    assert settings.of_process().vars == {"hook": "https://hooks.example/a"}
    monkeypatch.setenv("OUTLIVE_CONFIG", str(tmp_path / "missing.toml"))
    with pytest.raises(SettingsError, match=r"missing\.toml"):
        settings.of_process()

    with settings.using(Settings(vars={"a": 1})):
        assert settings.current().vars == {"a": 1}
