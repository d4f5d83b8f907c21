"""The process of a server: which event loop it has."""

from __future__ import annotations

import asyncio
import sys

import pytest
import uvloop

from outlive.http.server import new_loop


def test_a_server_has_the_loop_of_uvloop_where_that_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """And Python's own elsewhere."""
    fast = new_loop()
    monkeypatch.setitem(sys.modules, "uvloop", None)
    plain = new_loop()
    for loop in (fast, plain):
        loop.close()

    assert isinstance(fast, uvloop.Loop)
    assert isinstance(plain, asyncio.SelectorEventLoop)
