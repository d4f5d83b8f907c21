"""The Flask application in examples/flask_shop.py."""

from __future__ import annotations

import atexit
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def _at_the_end_of_the_test(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The engine of the application leaves when the test ends, and not with the process of all tests."""
    with ExitStack() as exits:

        def register(call: Callable[..., object], *args: Any) -> None:
            exits.callback(call, *args)

        monkeypatch.setattr(atexit, "register", register)
        yield


@pytest.mark.usefixtures("_at_the_end_of_the_test")
def test_a_request_starts_a_run_and_another_one_gets_its_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request that comes twice starts one run, and another request gets its result.

    The application is made as `flask --app flask_shop` makes it."""
    monkeypatch.setenv("OUTLIVE_STORE", f"sqlite:{tmp_path / 'shop.db'}")
    create_app = run_path(str(ROOT / "examples" / "flask_shop.py"))["create_app"]
    client = create_app().test_client()

    placed = [client.put("/orders/1", json={"item": "a lamp"}) for _ in range(2)]

    assert [(answer.status_code, answer.json) for answer in placed] == [(202, {"run": "order-1"})] * 2
    assert client.get("/orders/1").json == {"result": "paid for a lamp"}
    assert client.get("/orders/2").status_code == 404


def test_the_example_ends_quietly() -> None:
    """The folder of its store is there until its engine has left."""
    ran = [sys.executable, str(ROOT / "examples" / "flask_shop.py")]
    done = subprocess.run(ran, capture_output=True, text=True, timeout=50)

    assert done.stdout.splitlines()[-1] == "{'result': 'paid for a lamp'}"
    assert (done.stderr, done.returncode) == ("", 0)
