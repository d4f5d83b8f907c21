"""An installation with other features: `python -m tests.house.other_features URL [WITHOUT...]`.

It adds the feature of the tests to the list, or takes one out, before anything of the package that walks the list is
imported. Then it tries the engine, the HTTP API and the command line, and prints what each of them has.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import outlive
from outlive import _features as features
from tests.house.greetings import FEATURE


@outlive.workflow
async def hello(name: str) -> str:
    """A run that ends at once."""
    return f"hello {name}"


async def main(url: str) -> dict[str, Any]:
    """Run a workflow, use the API, and say what the installation has."""
    from outlive._kernel.model.cells import cell_table
    from outlive.http.app import Api
    from outlive.http.operation import OPERATIONS
    from tests.http.caller import Caller

    said: list[Any] = []
    async with outlive.Engine(url, poll_seconds=0.02) as engine:
        run = await engine.start(hello, "you")
        result = await run.result(timeout=30)
        if FEATURE in features.FEATURES:
            api = Caller(Api(engine))
            assert (await api.post("/api/v1/greetings", {"text": "good morning"})).status == 200
            while not all(it["is_answered"] for it in said) or not said:
                said = (await api.get("/api/v1/greetings")).data["items"]
    return {
        "result": result,
        "said": said,
        "cells": [it.name for it in cell_table()],
        "operations": sorted(OPERATIONS),
    }


def _shown(url: str) -> list[str]:
    """The lines of `outlive --help`, and of the command of the feature."""
    from click.testing import CliRunner

    from outlive.cli import main as cli

    shown = CliRunner().invoke(cli, ["--help"]).output.splitlines()
    if FEATURE in features.FEATURES:
        done = CliRunner().invoke(cli, ["greetings", "--store", url])
        assert done.exit_code == 0, done.exception
        shown += done.output.splitlines()
    return shown


if __name__ == "__main__":
    _, place, *rest = sys.argv
    features.FEATURES = tuple(it for it in (*features.FEATURES, FEATURE) if it.name not in rest)
    print(json.dumps(asyncio.run(main(place)) | {"shown": _shown(place)}))  # noqa: T201  # The test reads it.
