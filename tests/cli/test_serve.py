"""`outlive serve` as a process: it answers, refuses addresses that others can reach, and stops when asked to."""

from __future__ import annotations

import json
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from click.testing import CliRunner

from outlive.cli import main
from outlive.errors import ConfigurationError
from outlive.http.server import new_server, serve
from tests.cli.conftest import Command

Begin = Callable[..., Command]


def test_a_server_answers_and_stops_when_asked_to(command: Begin, tmp_path: Path) -> None:
    """A server answers from its store, and a SIGTERM ends it with 0."""
    server = command("serve", "--store", f"sqlite:{tmp_path}/s.db", "--port", "0")
    place = server.ready().split()[1]
    found = json.load(urlopen(Request(f"{place}/runs?limit=1"), timeout=20))
    server.signal(signal.SIGTERM)

    assert ({"items": [], "next": None, "previous": None}, 0) == (found, server.ends())
    assert "stops when it has answered" in server.log


def test_a_server_waits_for_its_store(command: Begin, tmp_path: Path) -> None:
    """It says what it waits for, and answers as soon as the store is there."""
    server = command("serve", "--store", f"sqlite:{tmp_path / 'later' / 's.db'}", "--port", "0")
    server.says("it is tried again in 1 s")
    (tmp_path / "later").mkdir()
    place = server.ready().split()[1]

    assert json.load(urlopen(Request(f"{place}/runs?limit=1"), timeout=20))["items"] == []


@pytest.mark.parametrize("options", [["--host", "0.0.0.0"], ["--host", "::"], ["--store", "memory:"]])
def test_a_server_that_others_could_use_without_a_key_is_refused(options: list[str]) -> None:
    """A server that other machines could use without a key is refused with exit code 2 before a store is opened.
    [S1]"""
    result = CliRunner().invoke(main, ["serve", "--store", "sqlite:nothing.db", *options])

    assert 2 == result.exit_code, result.output
    assert not Path("nothing.db").exists()


async def test_an_address_that_is_taken_is_a_mistake() -> None:
    """A port that is taken is reported with its number."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(ConfigurationError, match=f"{port} cannot be listened on"):
            await serve(new_server(None, port=port), ready=lambda place: None)
