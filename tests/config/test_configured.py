"""`Engine.configured`, `outlive config`, and the table of the guide against the code."""

from __future__ import annotations

import asyncio
import inspect
import json
from dataclasses import fields
from pathlib import Path

import pytest
from click.testing import CliRunner

import outlive
from outlive._features.flows.outside import settings as flow_settings
from outlive.cli import main
from outlive.cli.serve import CONNECTION_LIMITS, REQUEST_LIMITS
from outlive.config.setting import BY_NAME, SETTINGS, Setting
from outlive.errors import InvalidSettingsError
from outlive.errors.outside import SettingsError
from outlive.http import ApiLimits
from outlive.http.server import new_server
from outlive.limits import Limits
from outlive.types import Recovery, WorkerOptions
from tests.engine.inside import worker_settings_of

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "configuration.md"
FILE = """
store = "postgresql://ann:geheim@db/shop"

[worker]
lease_seconds = 33

[limits]
threads_max = 40

[flows.http]
allow_hosts = ["api.internal"]

[flows.shell.report]
argv = ["report"]
env = { TOKEN = "geheim" }
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, in which the program starts."""
    monkeypatch.chdir(tmp_path)
    for name in ("OUTLIVE_STORE", "OUTLIVE_CONFIG", "OUTLIVE_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


async def test_an_engine_takes_the_configuration(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file, then the environment, then what the program says itself."""
    (folder / "outlive.toml").write_text(FILE, "utf-8")
    monkeypatch.setenv("OUTLIVE_WORKER_NAME", "web-1")

    engine = outlive.Engine.configured(url="memory:", limits=Limits(threads_max=4))

    assert worker_settings_of(engine) == ("web-1", 5, 33, False)
    assert (engine.url, engine.limits.threads_max) == ("memory:", 4)
    async with engine:
        assert (await engine.health()).is_ready


def test_the_flows_of_a_named_file_are_those_of_the_process(folder: Path) -> None:
    """A program that names its file does not have to name it twice."""
    (folder / "shop.toml").write_text(FILE, "utf-8")
    with flow_settings.using(flow_settings.read({})):
        outlive.Engine.configured("shop.toml", url="memory:")

        assert flow_settings.current().http.allow_hosts == ["api.internal"]


def test_an_engine_without_a_store_is_refused(folder: Path) -> None:
    """An engine without a store is refused, and so are the mistakes of all tables together, each with its line.
    [FE-O13]
    """
    with pytest.raises(InvalidSettingsError, match="no store is named"):
        outlive.Engine.configured()
    (folder / "outlive.toml").write_text(
        'store = "foo:x"\n[worker]\nlease = "moon"\n[flows]\nhtp = 1\n[flows.shell.x]\nargv = []\nsecond_max = 3\n'
        "[flows.profiles.dev.docker.y]\n",
        "utf-8",
    )

    with pytest.raises(InvalidSettingsError) as caught:
        outlive.Engine.configured()

    found = {problem.setting: problem for problem in caught.value.problems}
    assert {name: problem.place.partition(":")[2] for name, problem in found.items()} == {
        "store": "1",
        "worker.lease": "3",
        "flows.htp": "5",
        "flows.shell.x.argv": "7",
        "flows.shell.x.second_max": "8",
        "flows.profiles.dev.docker.y": "9",
    }
    assert "did you mean http?" in found["flows.htp"].reason
    with pytest.raises(SettingsError, match="htp"):
        flow_settings.of_process()


def ask(*args: str, **environ: str) -> tuple[int, str]:
    """What a command answers."""
    result = CliRunner().invoke(main, list(args), env=environ)
    return result.exit_code, result.output


def test_config_show_says_where_each_value_comes_from(folder: Path) -> None:
    """For people and for programs; no password is shown."""
    (folder / "outlive.toml").write_text(FILE, "utf-8")

    code, table = ask("config", "show", OUTLIVE_WORKER_LEASE_SECONDS="44")
    _, given = ask("config", "show", "--given", "--json", OUTLIVE_WORKER_LEASE_SECONDS="44")

    assert (code, len(table.splitlines())) == (0, 1 + sum("*" not in it.name for it in SETTINGS) + 3)
    rows = {row["setting"]: (row["value"], row["from"]) for row in json.loads(given)["settings"]}
    assert rows == {
        "store": ("postgresql://ann:***@db/shop", "outlive.toml:2"),
        "worker.lease_seconds": (44.0, "OUTLIVE_WORKER_LEASE_SECONDS"),
        "limits.threads_max": (40, "outlive.toml:8"),
        "flows.http.allow_hosts": (["api.internal"], "outlive.toml"),
        "flows.shell.report.argv": (["report"], "outlive.toml"),
        "flows.shell.report.env.TOKEN": ("***", "outlive.toml"),
    }
    assert "geheim" not in table + given


def test_config_check_finds_everything(folder: Path) -> None:
    """Its exit code says whether there is a mistake, and commands that need the store refuse with all of them."""
    (folder / "outlive.toml").write_text("store = 'sqlite:none.db'\n", "utf-8")
    assert ask("config", "check") == (0, "outlive.toml: 1 setting, no mistake\n")
    assert ask("workers", "list") == (2, "Error: there is no file none.db\n")

    code, said = ask("config", "check", OUTLIVE_WORKER_LEASE_SECONDS="0", OUTLIVE_LOG_LEVEL="loud")

    assert (code, len(said.splitlines())) == (1, 2)
    code, listed = ask("config", "check", "--json", OUTLIVE_WORKER_LEASE_SECONDS="0")
    assert (code, json.loads(listed)["problems"][0]["place"]) == (1, "OUTLIVE_WORKER_LEASE_SECONDS")
    code, said = ask("workers", "list", OUTLIVE_WORKER_LEASE_SECONDS="0", OUTLIVE_LOG_LEVEL="loud")
    assert (code, "the configuration has 2 mistakes" in said) == (2, True)
    assert ask("workers", "list", "--store", "sqlite:a.db", OUTLIVE_WORKER_LEASE_SECONDS="0") == (
        2,
        "Error: there is no file a.db\n",
    )
    assert ask("workers", "list", OUTLIVE_NAMESPACE="acme") == (2, "Error: there is no file none.acme.db\n")


async def _new_store(url: str) -> None:
    async with outlive.Engine(url, worker=False):
        pass


def test_a_store_is_shown_only_when_it_is_certain_what_is_hidden(folder: Path) -> None:
    """A mistake may be in the name of `redact`; a person can look without the file."""
    asyncio.run(_new_store("sqlite:a.db"))
    (folder / "outlive.toml").write_text("redakt = ['password']\n", "utf-8")

    code, said = ask("runs", "count", "--store", "sqlite:a.db")

    assert (code, "did you mean redact?" in said, "OUTLIVE_CONFIG=/dev/null" in said) == (2, True, True)
    assert ask("runs", "count", "--store", "sqlite:a.db", OUTLIVE_CONFIG="/dev/null") == (0, "no run fits\n")


def test_defaults_are_those_of_the_engine() -> None:
    """The table is what people read; the engine and its classes are what counts."""
    engine = {name: it.default for name, it in inspect.signature(outlive.Engine).parameters.items()}
    for setting in SETTINGS:
        if setting.name in engine:
            assert setting.default == engine[setting.name], setting.name
    for each in fields(WorkerOptions):
        assert BY_NAME[f"worker.{each.name}"].default == each.default, each.name
    for owner, table in ((Limits, "limits"), (Recovery, "recovery"), (WorkerOptions, "worker")):
        own = {f"{table}.{field.name}" for field in fields(owner)}
        assert own == {setting.name for setting in SETTINGS if setting.name.startswith(f"{table}.")}


def test_limits_of_a_server_are_those_of_the_code() -> None:
    """Each has a setting, and the same default. [S35]"""
    own = {field.name: field.default for field in fields(ApiLimits) if field.name not in ("rate", "look_seconds")}
    taken = inspect.signature(new_server).parameters
    own |= {name: taken[name].default for name in CONNECTION_LIMITS}

    assert {f"server.{name}": value for name, value in own.items()} == {
        it.name: it.default
        for it in SETTINGS
        if it.name.startswith("server.") and it.name.endswith(("_max", "_seconds"))
        for it in SETTINGS
        if it.name.startswith("server.") and it.name.endswith(("_max", "_seconds"))
    }
    assert set(own) == {*CONNECTION_LIMITS, *REQUEST_LIMITS}


def rows_of_the_guide() -> list[str]:
    """The rows of the table, as the code makes them."""
    return [
        f"| `{it.name}` | {it.kind} | {_default(it)} | {it.variable and f'`{it.variable}`'} | {it.help} |"
        for it in SETTINGS
    ]


def _default(setting: Setting) -> str:
    value = setting.default
    if value is None or value == ():
        return ""
    if setting.name.endswith(".port"):
        return f"`{value}`"
    shown = str(value).lower() if isinstance(value, bool) else f"{value:,g}" if isinstance(value, float) else value
    return f"`{shown:,}`" if isinstance(shown, int) else f"`{shown}`"


def test_the_guide_has_every_setting() -> None:
    """With its kind, its default, its variable and what it means."""
    text = GUIDE.read_text("utf-8")
    found = [line for line in text.splitlines() if line.startswith("| `") and line.count("|") == 6]

    assert found == rows_of_the_guide(), "\n".join(rows_of_the_guide())
