"""What is written to a connection in one turn of the event loop is sent at once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from outlive.http.one_write import HELD_BYTES_MAX, OneWrite


class Sent:
    """A transport that notes how it is called."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def write(self, data: bytes) -> None:
        self.calls.append(data)

    def write_eof(self) -> None:
        self.calls.append("eof")

    def close(self) -> None:
        self.calls.append("close")

    def abort(self) -> None:
        self.calls.append("abort")

    def is_closing(self) -> bool:
        return "close" in self.calls


async def test_a_head_and_its_body_are_sent_at_once() -> None:
    """At the end of the turn in which they are written; those of a later turn are sent after them."""
    sent = Sent()
    transport = OneWrite(sent, asyncio.get_running_loop())
    transport.write(b"head")
    transport.write(b"body")
    assert [] == sent.calls
    await asyncio.sleep(0)
    transport.write(b"more")
    await asyncio.sleep(0)

    assert [b"headbody", b"more"] == sent.calls
    assert not transport.is_closing()


async def test_much_is_not_held_back() -> None:
    """A slow reader is noticed by what its socket does not take."""
    sent = Sent()
    transport = OneWrite(sent, asyncio.get_running_loop())
    transport.write(b"head")
    transport.write(b"x" * HELD_BYTES_MAX)

    assert [b"head" + b"x" * HELD_BYTES_MAX] == sent.calls
    await asyncio.sleep(0)
    assert len(sent.calls) == 1


@pytest.mark.parametrize(
    ("end", "calls"), [("close", [b"last", "close"]), ("write_eof", [b"last", "eof"]), ("abort", ["abort"])]
)
async def test_what_is_held_back_goes_before_an_end_in_peace(end: str, calls: list[Any]) -> None:
    """And is gone with a connection that is aborted."""
    sent = Sent()
    transport = OneWrite(sent, asyncio.get_running_loop())
    transport.write(b"last")
    getattr(transport, end)()
    await asyncio.sleep(0)

    assert calls == sent.calls
