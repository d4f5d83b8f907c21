"""A document is checked with the steps that live workers run: remote steps, and steps whose code is elsewhere."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import outlive
from outlive._features.flows.document.known_names import Listed
from outlive._features.flows.library.reading import read_document
from outlive.cli import main
from outlive.errors.document import FlowError
from outlive.http import Api
from outlive.testing import TestEngine
from outlive.types import StepInfo
from tests.http.caller import Caller

SCAN = {
    "input": {
        "type": "object",
        "properties": {"url": {"type": "string"}, "dpi": {"type": "integer"}},
        "required": ["url"],
        "additionalProperties": False,
    },
    "output": {"type": "object", "properties": {"words": {"type": "integer"}}},
}
WRONG = """
name: checked
steps:
  one: { use: scanners/scan, with: { uri: a } }
  two: { use: scanners/scan, with: { url: a, dpi: fine } }
  three: { use: scanners/scam }
  four: { use: scanners/scan, with: { url: "${{ steps.two.pages }}" } }
"""
FINE = "name: checked\nsteps: { one: { use: scanners/scan, with: { url: a } } }\noutput: '${{ steps.one.words }}'\n"


async def said_by_workers(engine: outlive.Engine) -> None:
    """A remote worker has said what it can do."""
    assert await engine.tasks.claim("scanners", {"scan": SCAN}, worker="scanner-1") is None


async def test_a_document_that_no_worker_can_run_is_not_published() -> None:
    """All mistakes are in the error; without a worker they were none, as a worker may begin later."""
    async with TestEngine() as engine:
        await engine.flows.apply(WRONG)
        await engine.flows.save_draft(WRONG.replace("uri", "uro"))
        await said_by_workers(engine)
        for refused in (engine.flows.apply(WRONG.replace("uri", "url2")), engine.flows.publish("checked")):
            with pytest.raises(FlowError) as error:
                await refused
            said = str(error.value)
            assert "steps.one calls scanners/scan: it has no parameter 'ur" in said
            assert "steps.two.with.dpi is a string; scanners/scan takes a number" in said
            assert "pages" in said
        await engine.flows.apply(FINE)


async def test_the_editor_checks_with_the_steps_of_workers() -> None:
    """Over HTTP the problems have them; a key for some workflows learns nothing of the steps of others."""
    async with TestEngine() as engine:
        await said_by_workers(engine)
        api = Caller(Api(engine))
        found = (await api.post("/api/v1/flows/check", {"document": WRONG})).data
        messages = [it["message"] + it["suggestion"] for it in found["problems"]]
        assert not found["is_fine"]
        assert any("did you mean scanners/scan?" in it for it in messages)

        keys = Api(engine, auth="keys")
        bound = await engine.keys.create("bound", scope="viewer", workflows=["order"])
        found = (await Caller(keys, key=bound.secret).post("/api/v1/flows/check", {"document": WRONG})).data
        assert found["is_fine"]
        assert not any("did you mean" in it["suggestion"] for it in found["problems"])


def test_a_step_of_python_whose_code_is_elsewhere_is_checked() -> None:
    """A step whose code is elsewhere is checked by the schemas of its workers, which may refer to definitions."""
    arguments = {
        "type": "object",
        "properties": {"order": {"$ref": "#/$defs/Order"}, "cents": {"type": "integer"}},
        "required": ["order"],
        "additionalProperties": False,
        "$defs": {"Order": {"type": "object", "properties": {"id": {"type": "integer"}}}},
    }
    result = {"type": "object", "properties": {"hold": {"type": "string"}}}
    text = """
name: elsewhere-checked
steps:
  one: { use: elsewhere.charge, with: { order: { id: 1 }, cent: 1 } }
  two: { use: elsewhere.charge, with: { order: 7, cents: "${{ steps.one.held }}" } }
  three: { use: elsewhere.charge, with: { order: 7 } }
"""
    info = StepInfo(name="elsewhere.charge", queue="", arguments=arguments, result=result, workers=1)

    with pytest.raises(FlowError) as error:
        read_document(text, listed=Listed([info], ()))

    said = str(error.value)
    assert "it has no parameter 'cent'" in said
    assert "held" in said
    assert "steps.three.with.order is a number; elsewhere.charge takes a map" in said


def test_the_command_checks_with_the_steps_of_workers(tmp_path: Path) -> None:
    """`--store` names where the workers are, and `--strict` makes an error of a step that none of them has."""
    url, file = f"sqlite:{tmp_path / 'flows.db'}", tmp_path / "one.flow.yaml"

    async def say() -> None:
        async with outlive.Engine(url, worker=False) as engine:
            await said_by_workers(engine)

    asyncio.run(say())
    for text, words, code, said in (
        (FINE, (), 0, "no worker is known that takes step scan"),
        (FINE, ("--store", url, "--strict"), 0, ": ok"),
        (WRONG, ("--store", url), 1, "it has no parameter 'uri'"),
        (FINE.replace("scan,", "crop,"), ("--store", url, "--strict"), 1, "takes step crop"),
    ):
        file.write_text(text, "utf-8")
        found = CliRunner().invoke(main, ["flows", "check", str(file), *words])
        assert (found.exit_code, said in found.output) == (code, True), found.output


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": [1], "required": {"a": 1}},
        {"type": ["object", "array", 7, {}], "properties": {"a": 1, "b": None}, "required": ["a", 7, []]},
        {"$ref": "#/$defs/a", "$defs": {"a": {"items": [{"$ref": "b"}] * 20}, "b": {"items": [{"$ref": "a"}] * 20}}},
        {"$ref": 7, "$defs": 7},
        {"anyOf": [{"type": "object"}] * 90, "allOf": 1, "enum": {"x": 1}, "const": [{}]},
        {"properties": {"a": {"$ref": "x"}}, "$defs": {"x": 5}},
    ],
)
async def test_a_schema_of_a_stranger_harms_no_check(schema: dict[str, Any]) -> None:
    """Whatever a remote worker says, a document is checked, and quickly; what makes no sense is taken for anything.
    [S27]"""
    async with TestEngine() as engine:
        assert await engine.tasks.claim("odd", {"step": {"input": schema, "output": schema}}) is None
        text = """
name: odd-checked
steps:
  one: { use: odd/step, with: { a: 1 } }
  two: { use: odd/step, with: "${{ steps.one }}" }
"""
        api = Caller(Api(engine))
        found = await api.post("/api/v1/flows/check", {"document": text})
        assert found.status == 200


def nest(levels: int) -> dict[str, Any]:
    """Definitions of which each refers to the next one eight times."""
    named = {f"d{n}": {"anyOf": [{"$ref": f"d{n + 1}"}] * 8} for n in range(levels)}
    return {"$ref": "d0", "$defs": {**named, f"d{levels}": {"type": "integer"}}}


async def test_references_that_multiply_are_cut() -> None:
    """Schemas that would have a thousand million parts with their definitions put in cost a check no time. [S27]"""
    async with TestEngine() as engine:
        assert await engine.tasks.claim("odd", {"step": {"input": nest(9), "output": nest(9)}}) is None
        text = "name: odd-nested\nsteps: { one: { use: odd/step, with: { a: 1 } } }\noutput: '${{ steps.one }}'"
        assert (await Caller(Api(engine)).post("/api/v1/flows/check", {"document": text})).data["is_fine"]
