"""The suite without pytest: which of its tests a store fails. For testing the suite itself with planted defects."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import pytest

from outlive_conformance.suite.factory import StoreFactory
from outlive_conformance.suite.whole import LocalStoreConformance

PATIENCE_SECONDS = 5.0
"""A defective store may also leave a caller waiting; that is a failure too."""


def find_failures(make_factory: Callable[[], StoreFactory], *, only: str = "") -> set[str]:
    """Run the whole suite, except for the tests that need processes, and name the tests that fail.

    Args:
        make_factory: makes the stores of one test.
        only: the name of the one test to run; all of them by default.
    """
    failures = set()
    with asyncio.Runner() as runner:
        for name, arguments in list_tests():
            if only not in ("", name):
                continue
            try:
                runner.run(asyncio.wait_for(_call(name, make_factory(), arguments), PATIENCE_SECONDS))
            except (Exception, pytest.fail.Exception):  # A defective store may fail in any way.
                failures.add(name)
    return failures


def list_tests() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every test that needs no processes, once for each set of its parameters."""
    for name, test in inspect.getmembers(LocalStoreConformance, inspect.iscoroutinefunction):
        if name.startswith("test_") and "shared" not in inspect.signature(test).parameters:
            yield from ((name, arguments) for arguments in _list_parameters(test))


def _list_parameters(test: Callable[..., Any]) -> list[dict[str, Any]]:
    """The parameters that `pytest.mark.parametrize` gives to a test."""
    marks = [mark for mark in getattr(test, "pytestmark", []) if mark.name == "parametrize"]
    choices = [[(mark.args[0], value) for value in mark.args[1]] for mark in marks]
    return [dict(chosen) for chosen in product(*choices)]


async def _call(name: str, factory: StoreFactory, arguments: dict[str, Any]) -> None:
    """Do for one test what the fixtures of the suite do."""
    test = getattr(LocalStoreConformance(), name)
    store, other = await factory.open(), await factory.open()
    fixtures = {"factory": factory, "clock": factory.clock, "store": store, "other": other}
    wanted = inspect.signature(test).parameters
    try:
        await test(**arguments, **{name: value for name, value in fixtures.items() if name in wanted})
    finally:
        await other.close()
        await store.close()
