"""The Flask application in examples/flask_shop.py."""

from __future__ import annotations

from pathlib import Path
from runpy import run_path

import pytest

ROOT = Path(__file__).parents[2]


def test_a_request_starts_a_run_and_another_one_gets_its_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when the first request comes twice. The application is made as `flask --app flask_shop` makes it."""
    monkeypatch.setenv("OUTLIVE_STORE", f"sqlite:{tmp_path / 'shop.db'}")
    create_app = run_path(str(ROOT / "examples" / "flask_shop.py"))["create_app"]
    client = create_app().test_client()

    placed = [client.put("/orders/1", json={"item": "a lamp"}) for _ in range(2)]

    assert [(answer.status_code, answer.json) for answer in placed] == [(202, {"run": "order-1"})] * 2
    assert client.get("/orders/1").json == {"result": "paid for a lamp"}
