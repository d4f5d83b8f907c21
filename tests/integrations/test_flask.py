"""The Flask application in examples/flask_shop.py."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from runpy import run_path

import pytest

ROOT = Path(__file__).parents[2]


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
