"""What `check-deploy --server` reads: open runs with nothing hidden, for admins, and with a row in the audit log."""

from __future__ import annotations

import gzip
from base64 import b64decode
from typing import Any

import msgspec
import pytest

import outlive
from outlive._features.deploys import open_runs
from outlive._kernel.journal.codec import open_journal
from outlive.http import Api
from outlive.testing import TestEngine
from tests.engine.inside import journal_of
from tests.http import shop
from tests.http.caller import Caller

PATH = "/api/v1/deploys/journals"


async def test_journals_are_as_they_lie_in_the_store() -> None:
    """Journals of open runs come as they are stored, with nothing redacted; ended and unknown runs are left out."""
    async with TestEngine(redact=["sum"]) as engine:
        await engine.start(shop.api_patient, id="open-1")
        await (await engine.start(shop.api_order, 5, id="ended-1")).result()
        await engine.settle()
        answer = await Caller(Api(engine)).post(PATH, {"run_ids": ["ended-1", "open-1", "none"]})
        history = await journal_of(engine, "open-1")

    (found,) = answer.data["items"]
    rows = [(seq, format_, crc, b64decode(body)) for seq, format_, crc, body in found["rows"]]
    assert (found["id"], found["workflow"], found["is_parked"]) == ("open-1", "api_patient", False)
    assert open_journal(rows, nonce=found["nonce"], run_id="open-1") == list(history)
    assert answer.data["left"] == []


async def test_reading_journals_is_for_admins_and_has_a_row() -> None:
    """The row has the ids of the runs that were given out."""
    async with TestEngine() as engine:
        for number in (1, 2):
            await engine.start(shop.api_patient, id=f"open-{number}")
        operator, admin = [await engine.keys.create(scope, scope=scope) for scope in ("operator", "admin")]
        body = {"run_ids": ["open-1", "open-2", "none"]}
        refused = await Caller(Api(engine, auth="keys"), key=operator.secret).post(PATH, body)
        given = await Caller(Api(engine, auth="keys"), key=admin.secret).post(PATH, body)
        (row,) = await engine.audit.list(verb="journals.read")

    assert (refused.status, given.status) == (403, 200)
    assert (row.actor, row.key, row.reason) == ("admin", admin.key.id, "open-1 open-2")


async def test_ids_that_outlive_made_are_read_too() -> None:
    """They may be longer than the ids that users choose. Runs that are not there are left out, and have no row."""
    async with TestEngine() as engine:
        admin = await engine.keys.create("admin", scope="admin")
        answer = await Caller(Api(engine, auth="keys"), key=admin.secret).post(PATH, {"run_ids": ["a" * 200]})
        rows = await engine.audit.list(verb="journals.read")

    assert (answer.status, answer.data["items"]) == (200, [])
    assert not rows


async def test_an_answer_is_bounded_and_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer is packed and ends when it holds enough; the ids that did not fit are listed to be asked for again."""
    monkeypatch.setattr(open_runs, "BYTES_MAX", 1)
    async with TestEngine() as engine:
        names = [f"open-{number}" for number in range(open_runs.AT_ONCE + 2)]
        for name in names:
            await engine.start(shop.api_patient, id=name)
        api = Caller(Api(engine))
        answer = await api.post(PATH, {"run_ids": names}, headers={"accept-encoding": "gzip"})
        many = await api.post(PATH, {"run_ids": [f"open-{number}" for number in range(51)]})

    found = msgspec.json.decode(gzip.decompress(answer.body))
    assert [it["id"] for it in found["items"]] == names[:-2]
    assert found["left"] == names[-2:]
    assert answer.headers["content-encoding"] == "gzip"
    assert many.status == 400


async def test_documents_come_page_by_page(monkeypatch: pytest.MonkeyPatch, own_flows: None) -> None:
    """In all revisions, with what is published."""
    monkeypatch.setattr(open_runs, "BYTES_MAX", 1)
    async with outlive.Engine("memory:", worker=False) as engine:
        for name in ("a.flow", "b.flow"):
            for step in ("one", "two"):
                await engine.flows.apply(f"name: {name}\nsteps:\n  {step}: {{ use: noop }}\n", by="ann")
        api, path = Caller(Api(engine)), "/api/v1/deploys/documents"
        page: Any = {"next": ""}
        seen: list[tuple[str, str]] = []
        while page["next"] is not None:
            page = (await api.get(path + (page["next"] and f"?after={page['next']}"))).data
            seen += [(it["name"], it["hash"]) for it in page["items"]]
        current = {info.name: info.current.version for info in await engine.flows.list() if info.current}
        wrong = await api.get(f"{path}?after=x")

    assert (seen, len(set(seen))) == (sorted(seen), 4)
    assert page["published"] == current
    assert wrong.status == 400
