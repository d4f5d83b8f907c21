"""Where settings come from, who wins, and mistakes: all of them at once, each with its place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from outlive import Retry
from outlive.config.reading import read_settings
from outlive.config.settings import Given, Settings
from outlive.errors import ConfigurationError, InvalidSettingsError
from outlive.errors.program import SettingProblem
from outlive.retention import Keep
from outlive.types import Recovery, WorkerOptions

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes files into the folder where the program starts, or below it."""
    monkeypatch.chdir(tmp_path)

    def put(text: str, name: str = "outlive.toml") -> Path:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
        return file

    return put


def read(**environ: str) -> Settings:
    """The settings with an environment that has only these variables."""
    return read_settings(environ=environ)


def mistakes(**environ: str) -> list[str]:
    """Everything that is wrong."""
    with pytest.raises(InvalidSettingsError) as caught:
        read(**environ)
    return [str(problem) for problem in caught.value.problems]


def test_a_flag_wins_over_a_variable_and_that_over_the_file(write: Write) -> None:
    """A flag wins over a variable and a variable over the file, and each value says where it comes from."""
    write('store = "memory:"\npoll_seconds = 1\n[worker]\nlease_seconds = 20\n\ngrace_seconds = 2\n')

    settings = read_settings(
        environ={"OUTLIVE_WORKER_LEASE_SECONDS": "30", "OUTLIVE_POLL_SECONDS": "2"},
        flags={"worker.lease_seconds": Given(40, "--lease-seconds")},
    )

    assert [settings[name] for name in ("worker.lease_seconds", "poll_seconds", "worker.grace_seconds")] == [40, 2, 2]
    assert settings.place("worker.lease_seconds") == "--lease-seconds"
    assert settings.place("poll_seconds") == "OUTLIVE_POLL_SECONDS"
    assert settings.place("worker.grace_seconds") == "outlive.toml:6"
    assert (settings.place("worker.lease"), settings["worker.lease"]) == ("default", "store")


def test_settings_become_options_of_the_engine(write: Write) -> None:
    """Settings become options of the engine, with units of time and lists in variables; a missing setting is left to
    the engine."""
    write(
        "[retention]\nsucceeded = '7d'\n[retention.workflows.'shop.order']\nfailed = '12w'\n"
        "[recovery]\nstale_after = 3\n"
    )

    options = read(
        OUTLIVE_WORKER_QUEUES="emails, default", OUTLIVE_RETRY_ATTEMPTS="none", OUTLIVE_WORKER_LEASE_SECONDS=""
    )
    flag = read(OUTLIVE_WORKER_SCHEDULES="off").engine_options()["worker"].schedules

    assert options.engine_options() == {
        "worker": WorkerOptions(queues=["emails", "default"]),
        "retention": [Keep(succeeded=7 * 86_400), Keep("shop.order", failed=84 * 86_400)],
        "recovery": Recovery(stale_after=3),
        "retry": Retry(attempts=None),
    }
    assert flag is False


def test_all_mistakes_are_reported_with_their_places(write: Write) -> None:
    """In files with lines, in variables by name; a name that was misspelt gets a suggestion."""
    write(
        'exit_when_stalled = 3\n[worker]\nlease_secnds = 4\nlease_seconds = "0.5s"\n\n'
        "[limits]\nthreads_max = [\n  1,\n]\n"
        'limits = 5\n[server]\nport = "x"\n[log]\nlevel = "loud"\n[retention]\nfailed = "1m"\n'
        "[recovery]\nenabled = 1\n[nothing.like.it]\n"
    )

    found = mistakes(OUTLIVE_STOR="memory:", OUTLIVE_LIMITS_THREADS_MAX="many", OUTLIVE_WORKER_LESE="x")

    assert [line.partition(": ")[0] for line in found] == [
        *(f"outlive.toml:{line}" for line in (1, 3, 4, 7, 10, 12, 14, 16, 18, 19)),
        "OUTLIVE_LIMITS_THREADS_MAX",
        "OUTLIVE_STOR",
        "OUTLIVE_WORKER_LESE",
    ]
    assert "exit_when_stalled: there is no such setting; did you mean worker.exit_when_stalled?" in found[0]
    assert "did you mean worker.lease_seconds?" in found[1]
    assert "'0.5s' cannot work: it is too short; give at least 1" in found[2]
    assert "[1] cannot work: give a whole number from 1 on, for example threads_max = 1" in found[3]
    assert "give true or false" in found[8]
    assert found[-2].endswith("did you mean OUTLIVE_STORE?")


def test_an_address_of_a_proxy_is_checked_with_all_other_settings(write: Write) -> None:
    """A wrong address of a proxy is reported together with the mistakes in other settings."""
    write('leese = 3\n[auth]\nproxies = ["10.0.0.0/8", "a.b"]\n[server]\nport = "x"\n')

    found = mistakes()

    assert [line.partition(": ")[0] for line in found] == ["outlive.toml:1", "outlive.toml:3", "outlive.toml:5"]
    assert "'a.b'] cannot work: 'a.b' is neither an address nor a network" in found[1]


def test_values_that_do_not_go_together_are_a_mistake(write: Write) -> None:
    """Though each of them is fine."""
    write("[limits]\npayload_inline_bytes_max = 10\npayload_bytes_max = 5\n[retention]\narchive = 'old'\n")

    first, second = mistakes()

    assert first.startswith("outlive.toml:2: limits: ")
    assert "payload_inline_bytes_max must not exceed payload_bytes_max" in first
    assert second.startswith("outlive.toml:5: retention: ")
    write("[limits]\npayload_inline_bytes_max = 10\npayload_bytes_max = 20\n")
    assert read()["limits.payload_bytes_max"] == 20
    assert issubclass(InvalidSettingsError, ConfigurationError)


def test_values_that_do_not_go_together_are_named_beside_other_mistakes(write: Write) -> None:
    """Except those of a table that has one: what is meant for it is not known."""
    write(
        "[limits]\npayload_inline_bytes_max = 10\npayload_bytes_max = 5\n"
        "[worker]\nlease_seconds = 0\n[retention]\narchive = 'old'\nfaild = '7d'\n"
    )

    assert [line.partition(": ")[0] for line in mistakes()] == ["outlive.toml:5", "outlive.toml:8", "outlive.toml:2"]
    assert len(mistakes(OUTLIVE_RETENTION_FAILD="7d")) == 3, "a variable that is misspelt may be meant for any table"
    write("[limits]\npayload_inline_bytes_max = 10\npayload_bytes_max = 5\n[limit]\n")
    assert len(mistakes()) == 1, "so may a table"


def test_the_settings_of_a_server_are_checked_together_if_all_of_them_are_known(write: Write) -> None:
    """A table that is misspelt may be one of them, and so may a file that cannot be read."""
    found = [SettingProblem("outlive.toml:2", "server.host", "it asks for no key")]

    def mistakes(**environ: str) -> list[str]:
        with pytest.raises(InvalidSettingsError) as caught:
            read_settings(environ=environ, check_server=lambda _: found)
        return [problem.setting for problem in caught.value.problems]

    write('[server]\nhost = "0.0.0.0"\n[worker]\nlease_seconds = 0\n')
    assert mistakes() == ["worker.lease_seconds", "server.host"]
    write('[server]\nhost = "0.0.0.0"\n[auht]\nmode = "keys"\n')
    assert mistakes() == ["auht"]
    write("[tool]\noutlive = 3\n", "pyproject.toml")
    assert mistakes(OUTLIVE_CONFIG="pyproject.toml", OUTLIVE_SERVER_HOST="0.0.0.0") == ["tool.outlive"]


def test_a_password_is_in_no_message(write: Write) -> None:
    """The message about a refused address does not show its password."""

    def refuse(url: Any) -> None:
        raise ConfigurationError(f"{url!r} is not a store")

    write('store = "postgresql://ann:geheim@db/shop?password=geheim"')

    with pytest.raises(InvalidSettingsError) as caught:
        read_settings(environ={"OUTLIVE_WORKER_LEASE": f"etcd://a:geheim@b/{'x' * 2000}"}, checks={"store": refuse})

    assert len(caught.value.problems) == 2
    assert "geheim" not in str(caught.value)
    assert "ann:***@db" in str(caught.value)


def test_the_nearest_file_counts(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own or the project's; paths in it are found from its folder, wherever the program is started."""
    write(
        "[tool.outlive]\nstore = 'sqlite:shop.db'\n[tool.outlive.retention]\nsucceeded = 9000\narchive = 'old'\n",
        "pyproject.toml",
    )
    write("[tool.other]\n", "a/pyproject.toml")
    write("", "a/b/keep")
    monkeypatch.chdir(tmp_path / "a" / "b")

    settings = read()

    assert settings["store"] == f"sqlite:{tmp_path / 'shop.db'}"
    assert settings["retention.archive"] == str(tmp_path / "old")
    assert settings.place("store") == f"{tmp_path / 'pyproject.toml'}:2"
    write("store = 'sqlite:/b.db'", "a/outlive.toml")
    assert read()["store"] == "sqlite:/b.db"
    assert read(OUTLIVE_CONFIG=str(tmp_path / "pyproject.toml")).place("retention.succeeded").endswith(":4")


def test_a_file_that_cannot_be_used_is_a_mistake_like_others(write: Write, tmp_path: Path) -> None:
    """Two files in one folder, one that is not there, and one that is not TOML; variables are checked all the same."""
    write("store = 'memory:'")
    write("[tool.outlive]\n", "pyproject.toml")
    assert "keep them in one file" in mistakes()[0]
    missing, variable = mistakes(OUTLIVE_CONFIG="missing.toml", OUTLIVE_WORKER_LEASE_SECONDS="x")
    assert "missing.toml: " in missing
    assert variable.startswith("OUTLIVE_WORKER_LEASE_SECONDS")
    write("[tool]\noutlive = 3\n", "pyproject.toml")
    assert mistakes() == [f"{Path.cwd()}/pyproject.toml: tool.outlive: it is a table; write [tool.outlive]"]
    write("store = \n", "pyproject.toml")
    assert "line 1" in mistakes()[0]


def test_a_file_of_another_user_above_is_refused(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says which programs flows may run. One that was named is taken."""
    file = write("store = 'memory:'")
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path / "inner")
    monkeypatch.setattr("outlive.config.file.is_trusted_owner", lambda path: False)

    assert "belongs to another user" in mistakes()[0]
    assert read(OUTLIVE_CONFIG=str(file))["store"] == "memory:"


def test_variables_of_others_are_left_alone(write: Write) -> None:
    """Secrets of flows, what Kubernetes says about a service, and what is like nothing of ours."""
    others = {
        "OUTLIVE_SECRET_STORE": "x",
        "OUTLIVE_SERVICE_HOST": "10.0.0.1",
        "OUTLIVE_PORT_80_TCP_ADDR": "10.0.0.1",
        "OUTLIVE_PG_BIN": "/usr/bin",
        "OUTLIVE_PROFILE": "dev",
    }

    assert read(**others) == Settings()
