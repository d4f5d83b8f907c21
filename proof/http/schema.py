"""`make schema`: what the OpenAPI document promises, held against the API by schemathesis.

For every operation schemathesis makes requests that fit the document and requests that do not. None may be answered
with a status, a type or a body that the document does not have, nor with a status from 500 on. Half of the requests
name runs, schedules and flows that there are.

The examples follow from the name of the operation and their number: the same ones in every run.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import suppress
from typing import Any

import msgspec
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import load_all_checks, not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from outlive.http import Api, ApiLimits
from outlive.http.operations.document import document_bytes
from outlive.testing import TestEngine
from proof.http.asgi import ask
from proof.http.place import add_store, new_store
from proof.http.scene import Scene

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
BASE = "http://localhost"
RENEW_EVERY = 50
"""Requests after which the scene is made again, because they delete and end what is in it."""
_OURS = ("Authorization", "User-Agent")
"""Headers that the caller sets: programs of this machine need no key."""


class Finding(msgspec.Struct):
    """An answer that the document does not have."""

    operation: str
    request: str
    answer: str
    problem: str


def operations() -> dict[str, Any]:
    """The operations of the document, as schemathesis reads it."""
    load_all_checks()
    schema = schemathesis.openapi.from_dict(msgspec.json.decode(document_bytes()))
    found: list[Any] = [result.ok() for result in schema.get_all_operations()]  # type: ignore[union-attr]
    return {operation.definition.raw["operationId"]: operation for operation in found}


class Explorer:
    """Sends what schemathesis makes to an API, and notes what the document does not have."""

    def __init__(self, scene: Scene, api: Api, loop: asyncio.AbstractEventLoop) -> None:
        self._scene, self._api, self._loop = scene, api, loop
        self.findings: list[Finding] = []
        self.statuses: Counter[tuple[str, int]] = Counter()
        self._sent = 0

    def explore(self, name: str, operation: Any, *, examples: int, first: int = 0) -> None:
        """Try so many requests that fit, and as many that do not."""
        for mode in (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE):
            with suppress(Unsatisfiable):  # Nothing that an operation without parameters is given is wrong.
                strategy = operation.as_strategy(mode)
                _each(strategy, examples, f"{name}/{first}", lambda case, pick: self._try(name, case, pick))

    def _try(self, name: str, case: Any, pick: int) -> None:
        if self._sent % RENEW_EVERY == 0:
            self._run(self._scene.renew())
        self._sent += 1
        if pick % 2:
            self._name_what_there_is(name, case, pick // 2)
        arguments = case.as_transport_kwargs(base_url=BASE)
        arguments["headers"] = {key: value for key, value in arguments["headers"].items() if key not in _OURS}
        try:
            request = requests.Request(**arguments).prepare()
        except (ValueError, requests.RequestException):
            return  # No request at all: no client could send it.
        body = request.body.encode() if isinstance(request.body, str) else request.body
        body = body if isinstance(body, bytes) else b""
        headers = {"host": "localhost", **{str(key): _text(value) for key, value in request.headers.items()}}
        answer = self._run(ask(self._api, str(request.method), request.path_url, headers, body))
        self.statuses[name, answer.status] += 1
        response = schemathesis.Response(
            status_code=answer.status,
            headers=answer.headers,
            content=answer.body,
            request=request,
            elapsed=0.0,
            verify=False,
        )
        try:
            case.validate_response(response, checks=CHECKS)
        except FailureGroup as failures:
            shown = f"{request.method} {request.path_url} {dict(request.headers)} {body[:2_000]!r}"
            problem = "; ".join(f"{type(each).__name__}: {each}" for each in failures.exceptions)
            self.findings.append(Finding(name, shown, f"{answer.status} {answer.body[:1_000]!r}", problem))

    def _name_what_there_is(self, name: str, case: Any, pick: int) -> None:
        values = {key: self._scene.values(name, key) for key in case.path_parameters or ()}
        case.path_parameters = dict(case.path_parameters or {}) | {
            key: found[pick % len(found)] for key, found in values.items() if found
        }
        case.body = self._scene.filled(name, case.body)

    def _run(self, work: Any) -> Any:
        return self._loop.run_until_complete(work)


def _text(value: str | bytes) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value


def _each(strategy: Any, examples: int, name: str, use: Callable[[Any, int], None]) -> None:
    """Use so many examples of a strategy, the same ones every time."""

    @seed(name)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=strategy, pick=st.integers(0, 1_000))
    def each(case: Any, pick: int) -> None:
        use(case, pick)

    each()


def lines(findings: Iterable[Finding]) -> list[str]:
    """Findings as text: one for each operation and problem, with one example."""
    found: dict[tuple[str, str], Finding] = {}
    for each in findings:
        found.setdefault((each.operation, each.problem.partition("\n")[0]), each)
    return [f"{it.operation}: {it.problem}\n  {it.request}\n  {it.answer}" for it in found.values()]


# -- All of them ------------------------------------------------------------------------------------------------


def explore(url: str, *, examples: int, first: int = 0, names: Iterable[str] = ()) -> Explorer:
    """Try operations of an API on a store, all of them unless named; so many requests that fit, and as many not."""
    loop = asyncio.new_event_loop()
    scene = _scene(url)
    try:
        explorer = loop.run_until_complete(anext(scene))(loop)
        for name, operation in operations().items():
            if not names or name in names:
                explorer.explore(name, operation, examples=examples, first=first)
    finally:
        loop.run_until_complete(scene.aclose())
        loop.close()
    return explorer


async def _scene(url: str) -> AsyncGenerator[Callable[[asyncio.AbstractEventLoop], Explorer], None]:
    limits = ApiLimits(wait_seconds_max=0.01, look_seconds=0.01)
    async with TestEngine(url) as engine:
        yield lambda loop: Explorer(Scene(engine), Api(engine, limits=limits), loop)


def main() -> int:
    """Try all operations, and print what is found."""
    parser = argparse.ArgumentParser(prog="python -m proof.http.schema", description=__doc__)
    parser.add_argument("--examples", type=int, default=100, help="of each kind, for each operation")
    parser.add_argument("--seed", type=int, default=0)
    add_store(parser, of_processes=False)
    parser.add_argument("operations", nargs="*", help="only these")
    given = parser.parse_args()
    logging.getLogger("outlive").setLevel(logging.CRITICAL)
    with new_store(given.store) as url:
        explorer = explore(url, examples=given.examples, first=given.seed, names=given.operations)
    for line in lines(explorer.findings):
        print(line)
    total = sum(explorer.statuses.values())
    by_status: Counter[int] = Counter()
    for (_, status), count in explorer.statuses.items():
        by_status[status] += count
    answers = ", ".join(f"{count:,} with {status}" for status, count in sorted(by_status.items()))
    print(f"{total:,} requests: {len(explorer.findings)} findings ({answers})")
    return 1 if explorer.findings else 0


if __name__ == "__main__":
    sys.exit(main())
