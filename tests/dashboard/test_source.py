"""The source of the dashboard: prettier and TypeScript have checked it, and the types in it are those of the API."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.dashboard.source import CHECKED, REF, ROOT, sources, to_check

WIDTH_MAX = 120
ASKED = re.compile(
    r"(?:/\*\* @type \{Promise<import\('outlive'\)\.(\w+)>\} \*/ \(\s*)?(?<![.\w])get\(\s*(?:at)?[`'](/[^`']*)[`']"
)
"""A request for a value, and the type that it is said to have."""
UNTYPED = {"/runs/{}/history/{}/{}": "any value of a user", "/demo": "only the demo answers it, and no document has it"}


def test_the_source_is_as_it_was_checked() -> None:
    """Prettier has formatted it, and TypeScript found no mistake in it, with the answers of the API as they are."""
    assert json.loads(CHECKED.read_bytes()) == to_check(), "run `make dashboard`, which formats, checks and writes that"


@pytest.mark.parametrize("path", sources(), ids=lambda path: path.name)
def test_each_module_is_checked_and_narrow(path: Path) -> None:
    """Editors check the types of a module that says so; a line fits beside another."""
    lines = path.read_text("utf-8").splitlines()

    assert path.suffix != ".js" or lines[0] == "// @ts-check"
    assert [line for line in lines if len(line) > WIDTH_MAX] == []


def answer_of(address: str) -> str | None:
    """The schema of what the operation at an address answers; `{}` stands for any part."""
    parts = f"/api/v1{address}".split("/")
    for path, methods in json.loads((ROOT / "docs" / "openapi.json").read_bytes())["paths"].items():
        own = ["{}" if part.startswith("{") else part for part in path.split("/")]
        if own == parts and "get" in methods:
            content = methods["get"]["responses"]["200"]["content"]
            return str(content["application/json"]["schema"].get("$ref", "")).removeprefix(REF)
    return None


def test_an_answer_has_the_type_of_its_operation() -> None:
    """TypeScript believes what a module says of an answer, so each request says what the document says."""
    asked = [
        (re.sub(r"\$\{[^}]*\}", "{}", where), said)
        for path in sources()
        if path.suffix == ".js"
        for said, where in ASKED.findall(path.read_text("utf-8"))
    ]

    assert len(asked) > 40
    assert [(where, said) for where, said in asked if where not in UNTYPED and said != answer_of(where)] == []
    assert UNTYPED.keys() == {where for where, said in asked if not said}
