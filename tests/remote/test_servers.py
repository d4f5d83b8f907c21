"""A connection to what is not a server of ours, or one that is away, silent or slow; and its own end meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

import outlive
from outlive.errors import (
    CommitUnknownError,
    EngineClosedError,
    InvalidArgumentError,
    OutliveError,
    RunParkedError,
    ServerError,
    StoreUnavailableError,
)
from outlive.errors.outside import UnreachableError
from outlive.http.problem import problem_of
from outlive.remote import Remote

OPEN_STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\nretry: 2000\n\n"
"""The head of a stream, which says nothing yet."""
ITEM = b'event: stream\nid: 0.-1;n=1\ndata: {"stream":"n","position":1,"value":7,"call":"","attempt":1,"epoch":2}\n\n'
END = b"event: end\ndata: {}\n\n"


def reply(status: str, body: bytes = b"", *headers: str) -> bytes:
    """An answer, after which the connection is closed."""
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", "connection: close", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class Odd:
    """A server that answers with what it is given, the last one again and again."""

    def __init__(self, *answers: bytes) -> None:
        self._answers = list(answers)
        self.heads: list[str] = []
        """The requests that have come."""
        self.came = asyncio.Event()
        self.left = asyncio.Event()
        """Whether a caller has closed its connection."""
        self.go_on = asyncio.Event()
        """Ends a connection that was answered with a stream."""

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        self.heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        self.came.set()
        said = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        writer.write(said)
        if not said:
            await reader.read()
            self.left.set()
        elif said == OPEN_STREAM:
            await self.go_on.wait()
        writer.close()


@asynccontextmanager
async def connected(odd: Odd, timeout: float = 30.0) -> AsyncIterator[Remote]:
    """A connection to such a server."""
    async with await asyncio.start_server(odd.answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with outlive.connect(f"http://127.0.0.1:{port}", timeout=timeout) as remote:
            yield remote


async def first_item(remote: Remote) -> Any:
    """What a stream begins with."""
    async for item in remote.get("order-7").stream("n"):
        return item
    return None


async def drained(items: AsyncIterator[Any], seen: list[Any]) -> None:
    """Take all that comes."""
    async for each in items:
        seen.append(each)  # noqa: PERF401 (what came before an error counts)


Verb = Callable[[Remote], Any]
VERBS: dict[str, Verb] = {
    "start": lambda remote: remote.start("order"),
    "signal": lambda remote: remote.signal("order-7", "paid"),
    "list": lambda remote: remote.list(),
    "result": lambda remote: remote.get("order-7").result(timeout=1),
    "stream": first_item,
}


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (reply("200 OK", b"<html>Welcome</html>", "content-type: text/html"), "Is this the address of `outlive serve`"),
        (reply("201 Created", b'{"hello": "world"}'), "Is this the address of `outlive serve`"),
        (reply("202 Accepted", b"null"), "Is this the address of `outlive serve`"),
        (reply("301 Moved", b"", "location: https://runs.example.com/"), "sends its callers to https://runs.example"),
    ],
    ids=["page", "json", "null", "redirect"],
)
async def test_an_answer_of_another_program_is_an_error(verb: Verb, answer: bytes, said: str) -> None:
    """An answer that the API does not give, from another program or a redirect, is an error that says so."""
    async with connected(Odd(answer)) as remote:
        with pytest.raises(ServerError, match=said):
            await verb(remote)


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
async def test_a_proxy_whose_server_stays_away_is_asked_for_so_long(verb: Verb) -> None:
    """It says nothing of when to come again; that is not a reason to ask for ever."""
    odd = Odd(reply("502 Bad Gateway", b"<html>"))
    async with connected(odd, timeout=0.2) as remote:
        with pytest.raises(ServerError, match=r"502: <html>; Try again later: a proxy answers"):
            await verb(remote)
    assert len(odd.heads) < 8  # Each pause is longer than the one before.


def refusal(kind: type[OutliveError], *headers: str) -> bytes:
    """The answer of a server whose store is away, or that stops."""
    body = msgspec.json.encode(problem_of(kind.__new__(kind)).body)
    return reply("503 Service Unavailable", body, *headers)


LATER = "retry-after: 5"


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
async def test_the_store_of_a_server_is_away_as_that_of_an_engine_is(verb: Verb) -> None:
    """One `except` takes both; a store of which nothing is known says so."""
    async with connected(Odd(refusal(StoreUnavailableError, LATER)), timeout=1) as remote:
        with pytest.raises(StoreUnavailableError, match="the store of this server cannot be reached") as raised:
            await verb(remote)
    async with connected(Odd(refusal(CommitUnknownError, LATER)), timeout=1) as remote:
        with pytest.raises(CommitUnknownError, match="the store of this server cannot be reached"):
            await verb(remote)
    async with connected(Odd(refusal(EngineClosedError, LATER)), timeout=1) as remote:
        with pytest.raises(ServerError, match="503 engine_closed"):
            await verb(remote)

    assert type(raised.value) is StoreUnavailableError
    assert (raised.value.place, raised.value.advice) == ("the server", ())


@pytest.mark.parametrize(
    "first",
    [
        refusal(CommitUnknownError),
        refusal(EngineClosedError),
        reply("504 Gateway Timeout"),
        b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n",
    ],
    ids=["unknown", "stopped", "proxy", "broken"],
)
async def test_an_earlier_try_whose_outcome_is_not_known_is_not_forgotten(first: bytes) -> None:
    """The last answer is that nothing was written, which is true of the last request only. What reads has no doubt."""
    last = refusal(StoreUnavailableError, LATER)
    async with connected(Odd(first, last), timeout=1) as remote:
        with pytest.raises(CommitUnknownError, match="an earlier request may have been carried out"):
            await remote.signal("order-7", "paid")
    async with connected(Odd(first, last), timeout=1) as remote:
        with pytest.raises(StoreUnavailableError) as raised:
            await remote.list()
    async with connected(Odd(refusal(StoreUnavailableError), last), timeout=1) as remote:
        with pytest.raises(StoreUnavailableError) as known:
            await remote.signal("order-7", "paid")

    assert [type(raised.value), type(known.value)] == [StoreUnavailableError] * 2


async def test_a_stream_goes_on_when_a_proxy_has_its_server_again() -> None:
    """Behind the last item, as after every break."""
    odd = Odd(OPEN_STREAM + ITEM, reply("503 Service Unavailable"), OPEN_STREAM + END)
    async with connected(odd) as remote:
        items = [item async for item in remote.get("order-7").stream("n", int, positions=True)]

    assert items == [outlive.types.StreamItem(stream="n", position=1, value=7, call="", attempt=1, epoch=2)]
    assert "last-event-id: 0.-1;n=1" in odd.heads[2]


def item(index: int) -> bytes:
    """One item of a batch."""
    return f'event: item\ndata: {{"index":{index},"status":"succeeded","result":{index},"error":null}}\n\n'.encode()


async def test_items_of_a_batch_come_once_though_the_stream_breaks() -> None:
    """The server begins again after a break; which items there were is remembered here, in whatever order they came."""
    first, second = b"".join(map(item, (0, 3, 1))), b"".join(map(item, (0, 1, 2, 3)))
    parked = b'event: batch\ndata: {"parked":"b~1","reason":"the code changed"}\n\n'
    going = b'event: batch\ndata: {"parked":null,"reason":""}\n\n'
    seen: list[Any] = []
    async with connected(Odd(OPEN_STREAM + going + first, OPEN_STREAM + second + parked)) as remote:
        with pytest.raises(RunParkedError, match="the code changed"):
            await drained(remote.batches.get("b").items(), seen)

    assert [each.index for each in seen] == [0, 3, 1, 2]


async def test_server_that_leaves_a_stream_and_stays_away_is_named() -> None:
    """After as long as any other request is tried."""
    async with outlive.connect("http://127.0.0.1:9", timeout=0.1) as remote:
        with pytest.raises(UnreachableError, match="broke off and stays away"):
            await first_item(remote)


async def test_a_stream_is_asked_for_again_when_the_server_says_so() -> None:
    """A stream that a busy server refuses is asked for again after the time that it names, unless that is later than
    the timeout."""
    busy = reply("503 Service Unavailable", b"", "retry-after: 1")
    patient, hasty = Odd(busy, OPEN_STREAM + ITEM), Odd(busy)
    begun_at = asyncio.get_running_loop().time()
    async with connected(patient) as remote:
        assert await first_item(remote) == 7
    assert asyncio.get_running_loop().time() - begun_at >= 1
    async with connected(hasty, timeout=0.9) as remote:
        with pytest.raises(ServerError):
            await first_item(remote)

    assert (len(patient.heads), len(hasty.heads)) == (2, 1)


async def test_a_silent_stream_outlives_the_time_of_a_request_and_a_restart() -> None:
    """How long it was silent does not count: only how long the server is away."""
    odd = Odd(OPEN_STREAM, OPEN_STREAM + ITEM)
    async with connected(odd, timeout=0.1) as remote:
        reading = asyncio.ensure_future(first_item(remote))
        await odd.came.wait()
        async with outlive.connect("http://127.0.0.1:9", timeout=0.3) as elsewhere:
            with pytest.raises(UnreachableError):
                await elsewhere.count()  # Takes three times as long as a request to the other one may.
        assert not reading.done()
        odd.go_on.set()
        assert await reading == 7


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
async def test_a_caller_that_is_cancelled_leaves_nothing_at_the_server(verb: Verb) -> None:
    """Its connection is closed, so its thread ends, the program need not wait for it, and no task is claimed for it."""
    odd = Odd(b"")
    async with connected(odd) as remote:
        waiting = asyncio.ensure_future(verb(remote))
        await odd.came.wait()
        waiting.cancel()
        await odd.left.wait()
        with pytest.raises(asyncio.CancelledError):
            await waiting


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
async def test_closing_a_connection_ends_its_calls(verb: Verb) -> None:
    """At once, as an engine does; they say why."""
    odd = Odd(b"")
    async with connected(odd) as remote:
        waiting = asyncio.ensure_future(verb(remote))
        await odd.came.wait()
    await odd.left.wait()
    with pytest.raises(EngineClosedError, match=r"outlive\.connect"):
        await waiting


async def test_an_operation_by_name_gives_text_and_refuses_streams() -> None:
    """An operation that is asked for by its name gives plain text as text, and one with messages refers to `follow`."""
    async with connected(Odd(reply("200 OK", b"runs 7\n", "content-type: text/plain"))) as remote:
        assert await remote.operate("health.metrics") == "runs 7\n"
        with pytest.raises(InvalidArgumentError, match=r"use engine\.follow\('runs.follow_list'"):
            await remote.operate("runs.follow_list")


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("http://runs.example.com:99999", {}),
        ("http://runs.example.com:port", {}),
        ("http://[::1", {}),
        ("http://runs.example.com", {"timeout": "soon"}),
        ("http://runs.example.com", {"timeout": 0}),
        ("http://runs.example.com", {"key": 7}),
    ],
)
def test_a_connection_that_cannot_work_is_refused(url: str, options: dict[str, Any]) -> None:
    """Before anything is sent."""
    with pytest.raises(InvalidArgumentError, match=r"outlive\.connect"):
        outlive.connect(url, **options)


def test_a_wrong_port_shows_no_password() -> None:
    """The error of an address with a wrong port does not show its password."""
    with pytest.raises(InvalidArgumentError) as refused:
        outlive.connect("https://ann:secret@runs.example.com:port")
    assert "secret" not in str(refused.value)


async def test_an_empty_variable_is_not_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty OUTLIVE_KEY, as a Compose file without a value sets it, sends no key."""
    monkeypatch.setenv("OUTLIVE_KEY", "")
    odd = Odd(reply("200 OK", b'{"count": 3, "at_least": false}', "content-type: application/json"))
    async with connected(odd) as remote:
        assert await remote.count() == 3
    assert "authorization" not in odd.heads[0]
