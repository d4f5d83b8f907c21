"""The OpenAPI document: it is in the repository as it is served, and says of each operation what the table says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from outlive._kernel.model.id import RESERVED
from outlive.http import Api
from outlive.http.operation import OPERATIONS, PREFIX
from outlive.http.operations.document import MOUNTS_MAX, document_bytes
from outlive.http.principal import NO_SCOPE
from outlive.testing import TestEngine
from tests.http.caller import Caller

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docs" / "openapi.json"
TABLE = ROOT / "docs" / "reference" / "operations.md"
DOCUMENT: dict[str, Any] = msgspec.json.decode(document_bytes())


def test_the_file_is_what_is_served() -> None:
    """`make generate` writes both files."""
    assert FILE.read_bytes() == document_bytes(), "docs/openapi.json is not up to date: run make generate"


def test_the_table_has_every_operation() -> None:
    """With its id, method, path, scope and what it does. [FE-O1]"""
    rows = re.findall(
        r"^\| `([\w.]+)` \| `(\w+) (\S+)` \| `(\w+)` \| (.*) \|$", TABLE.read_text("utf-8"), flags=re.MULTILINE
    )
    wanted = [(it.name, it.method, it.path, it.scope, it.promise) for it in OPERATIONS.values()]

    assert sorted(wanted) == sorted(rows), "docs/reference/operations.md is not up to date: run make generate"


ABOUT_THE_SERVER = {"me", "overview", "health", "audit", "store", "bulk", "openapi.json", "docs", "docs.css"}


def test_an_address_is_of_a_thing_and_names_are_in_braces() -> None:
    """The first word is a plural of what there are many of, and a verb is the last one, after what it is done to."""
    first = {it.path.removeprefix(f"{PREFIX}/").split("/")[0] for it in OPERATIONS.values() if PREFIX in it.path}

    assert not [word for word in first - ABOUT_THE_SERVER if not word.endswith("s")]
    assert not [it.path for it in OPERATIONS.values() if re.search(r"/(list|get|delete|create|all)(/|$)", it.path)]
    assert not [
        it.path for it in OPERATIONS.values() if it.path != it.path.lower() or "_" in re.sub(r"{.*?}", "", it.path)
    ]


def test_no_run_has_the_id_of_a_list_of_runs() -> None:
    """`GET /runs/count` would be the run and the count."""
    lists = [re.fullmatch(rf"{PREFIX}/runs/(\w+)", it.path) for it in OPERATIONS.values() if it.method == "GET"]

    assert {found[1] for found in lists if found is not None} == RESERVED


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_an_operation_is_described_as_it_is(name: str) -> None:
    """Its names, its answers, its errors; and every field that is not plain has words."""
    it = OPERATIONS[name]
    entry = DOCUMENT["paths"][it.path][it.method.lower()]
    named = [each["name"] for each in entry.get("parameters", ()) if each["in"] == "path"]

    assert list(it.names) == named
    assert {str(status) for status in it.answers} <= set(entry["responses"])
    assert (entry.get("security") == []) is (it.scope == NO_SCOPE)
    assert entry["summary"].endswith(".")


def test_every_reference_leads_somewhere() -> None:
    """Every reference of the document leads to a schema, every schema is used, and types of parameters are not among
    them."""
    schemas = DOCUMENT["components"]["schemas"]
    found = set(re.findall(r"#/components/schemas/(\w+)", document_bytes().decode()))

    assert found == set(schemas)
    assert not [name for name in schemas if name.endswith("Query")]


async def test_the_document_and_the_page_are_served() -> None:
    """The page needs nothing from elsewhere, and has no script."""
    api = Caller(Api(TestEngine()))
    document, page, style = [await api.get(f"/api/v1/{name}") for name in ("openapi.json", "docs", "docs.css")]

    assert document.body == document_bytes()
    assert (200, 200) == (page.status, style.status)
    text = page.body.decode()
    assert all(it.path in text for it in OPERATIONS.values())
    assert not re.search(r"<script|https?:|style=| on\w+=", text)


def test_documents_of_many_mounts_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client may choose a part of the path below which the API is mounted."""
    monkeypatch.setattr("outlive.http.operations.document.document_of", lambda operations: {})
    document_bytes.cache_clear()
    try:
        for number in range(MOUNTS_MAX + 5):
            assert f"/tenants/{number}" in document_bytes(f"/tenants/{number}").decode()

        assert document_bytes.cache_info().currsize <= MOUNTS_MAX
    finally:
        document_bytes.cache_clear()


def test_a_stream_says_what_its_messages_hold() -> None:
    """By their names, with a schema that is in the document: a generated client has types for them."""
    streams = {it.name: it for it in OPERATIONS.values() if it.media == "text/event-stream"}
    shown = {
        entry["operationId"]: entry["responses"]["200"]["content"]["text/event-stream"]["x-messages"]
        for entries in DOCUMENT["paths"].values()
        for entry in entries.values()
        if entry["operationId"] in streams
    }

    assert {name: list(it.messages) for name, it in streams.items()} == {name: list(it) for name, it in shown.items()}
    assert shown["runs.follow_stream"] == {
        "stream": {"$ref": "#/components/schemas/StreamItem"},
        "end": {"$ref": "#/components/schemas/StreamEnd"},
    }
    assert DOCUMENT["components"]["schemas"]["StreamEnd"]["required"] == ["position"]
