"""The OpenAPI document: it is in the repository as it is served, and says of each operation what the table says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from outlive.http import Api
from outlive.http.operation import OPERATIONS
from outlive.http.operations.document import MOUNTS_MAX, document_bytes
from outlive.http.principal import NO_SCOPE
from outlive.testing import TestEngine
from tests.http.caller import Caller

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docs" / "openapi.json"
TABLE = ROOT / "docs" / "reference" / "http.md"
DOCUMENT: dict[str, Any] = msgspec.json.decode(document_bytes())


def test_the_file_is_what_is_served() -> None:
    """`make openapi` writes both files."""
    assert FILE.read_bytes() == document_bytes(), "docs/openapi.json is not up to date: run make openapi"


def test_the_table_has_every_operation() -> None:
    """With method, path, scope and what it does."""
    rows = re.findall(r"^\| `(\w+) (\S+)` \| `(\w+)` \| (.*) \|$", TABLE.read_text("utf-8"), flags=re.MULTILINE)
    wanted = [(it.method, it.path, it.scope, it.promise) for it in OPERATIONS.values()]

    assert sorted(wanted) == sorted(rows), "docs/reference/http.md is not up to date: run make openapi"


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
    """And no type of a parameter is listed among those of bodies."""
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
