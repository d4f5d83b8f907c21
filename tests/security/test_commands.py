"""`outlive keys` and `outlive audit`."""

from __future__ import annotations

import json
from pathlib import Path

import apsw
import pytest
from click.testing import CliRunner

from outlive.cli import main
from outlive.cli.edge import shell_user


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A store that is there."""
    place = tmp_path / "keys.db"
    place.touch()
    return f"sqlite:{place}"


def outlive_cli(*words: str, code: int = 0) -> str:
    """What a command prints."""
    result = CliRunner().invoke(main, words)
    assert result.exit_code == code, result.output
    return result.output


def test_keys_are_made_listed_and_revoked_by_a_person(url: str) -> None:
    """The audit log names the person who creates and revokes a key, and `audit verify` notices a changed row."""
    new = json.loads(
        outlive_cli("keys", "create", "ci", "--scope", "operator", "--expires", "90d", "--store", url, "--json")
    )
    made = new["key"]
    assert new["secret"].startswith(f"olv_{made['id']}_")
    assert "its secret is not kept" in outlive_cli("keys", "create", "ann", "--workflow", "order", "--store", url)
    listed = outlive_cli("keys", "list", "--store", url)
    assert new["secret"] not in listed
    assert ["order" in line for line in listed.splitlines()] == [False, True, False]
    assert f"key {made['id']} of ci is revoked" in outlive_cli("keys", "revoke", made["id"], "--store", url)
    assert "there is no key x" in outlive_cli("keys", "revoke", "x", "--store", url, code=1)

    rows = json.loads(outlive_cli("audit", "list", "--target", made["id"], "--store", url, "--json"))
    assert [(row["actor"], row["verb"], row["via"]) for row in rows] == [
        (shell_user(), "key.revoke", "cli"),
        (shell_user(), "key.create", "cli"),
    ]
    assert "key.revoke" in outlive_cli("audit", "list", "--store", url)
    head = json.loads(outlive_cli("audit", "verify", "--store", url, "--json"))["head"]
    assert "is whole: 3 rows" in outlive_cli("audit", "verify", "--since", head, "--store", url)
    with apsw.Connection(url.removeprefix("sqlite:")) as connection:
        connection.execute("UPDATE outlive_audit SET body = replace(body, 'ci', 'xy') WHERE number = 1")
    assert "row 1 was changed" in outlive_cli("audit", "verify", "--store", url, code=1)


def test_a_key_of_a_worker_is_for_queues(url: str) -> None:
    """A key of a worker is bound to queues, is listed with them, and cannot be bound to workflows. [S3]"""
    create = ("keys", "create", "gpu-1", "--store", url, "--scope", "worker")
    assert outlive_cli(*create, "--queue", "gpu", "--queue", "video").startswith("olv_")
    assert "queues gpu, video" in outlive_cli("keys", "list", "--store", url)
    assert "bind it to queues instead" in outlive_cli(*create, "--workflow", "order", code=2)


def test_an_invalid_span_of_a_key_is_a_mistake(url: str) -> None:
    """A span that cannot be one gets exit code 2 and an example."""
    for wrong in ("soon", "0d", "-1d", "5 h", ""):
        said = outlive_cli("keys", "create", "ci", f"--expires={wrong}", "--store", url, code=2)
        assert ("give more than 0 seconds" if wrong == "0d" else "for example 90s") in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--host", "0.0.0.0"), "can be reached from other machines"),
        (("--host", "::"), "let every caller need a key with --auth keys"),
        (("--auth-header", "x-user", "--auth-proxies", "10.0.0.5"), "give --auth keys (auth.mode"),
        (("--auth", "keys", "--auth-header", "x-user"), "needs the addresses of the proxies"),
        (
            ("--auth", "keys", "--auth-header", "x-user", "--auth-proxies", "proxy"),
            "is neither an address nor a network",
        ),
        (("--auth", "open"), "Invalid value"),
    ],
)
def test_a_server_that_is_open_to_others_does_not_start(url: str, words: tuple[str, ...], said: str) -> None:
    """Exit code 2, before it listens. [S1]"""
    assert said in outlive_cli("serve", *words, "--store", url, code=2)


def test_a_server_names_all_that_does_not_go_together(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the place of each, beside every other mistake."""
    (tmp_path / "outlive.toml").write_text(
        '[server]\nhost = "0.0.0.0"\n[auth]\nheader = "x-user"\n[limits]\nthreads_max = 0\n', "utf-8"
    )
    monkeypatch.chdir(tmp_path)

    said = outlive_cli("serve", "--store", url, code=2)

    assert [line.strip().partition(": ")[0] for line in said.splitlines()[1:]] == [
        "outlive.toml:6",
        "outlive.toml:4",
        "outlive.toml:4",
        "outlive.toml:2",
    ]
    # A mistake in [auth] may be what opens the server: whether it is open is said when that is corrected.
    assert "can be reached" not in outlive_cli("serve", "--store", url, "--auth-header", "", code=2)
