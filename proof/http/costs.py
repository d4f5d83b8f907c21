"""The second half of `make malformed`: how much of a processor a request costs for each of its bytes.

Every operation gets bodies that are cheap to send and could be dear to read: deep nesting, many brackets, many names
that are not known, long lists and texts, as the whole body and in each of its fields; where a document is read, the
documents of `hostile_documents`; where parameters are read, long ones; where runs are found by filters, filters that
many runs of a filled store pass, each, and no run passes all. A server of its own, in a process of its own,
answers them one after the other, and the time that its process has used is read before and after each. That time does
not depend on what else the machine does, so there is a bound for it: some time for any request, and some for a byte.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import quote, urlencode
from urllib.request import urlopen

import msgspec

from outlive.engine import Engine
from outlive.http.limits import ApiLimits
from outlive.http.nesting import CONTAINERS_MAX
from outlive.http.operation import EVENT_STREAM, OPERATIONS, Operation
from outlive.http.principal import NO_SCOPE
from proof.http import program
from proof.http.hostile_documents import KINDS, document
from proof.http.place import add_store, new_store
from proof.http.requests import WANTED, Wanted
from proof.http.typed_requests import FITTING, SPARE, TYPED, body_of
from proof.http.victim import TURNS, Victim, server_of

LENGTH, LARGE_LENGTH = 64 * 1024, 2_000_000
"""Of a hostile body. In the large one a cost shows that grows faster than the body."""
OPEN_LENGTH = ApiLimits().open_body_bytes_max - SPARE
"""Of a body that fits, of an operation that needs no key."""
QUERY_LENGTH = 12_000
"""The head of a request may have a few times as many."""
ANY_SECONDS, BYTE_SECONDS = 0.15, 1.5e-6
"""What a request may cost however short it is, and for each byte."""
DOCUMENT_SECONDS, DOCUMENT_BYTE_SECONDS = 0.5, 15e-6
"""The same where a document is checked: its values may be held against its schemas, and it becomes a graph."""
TURN_SECONDS, TURN_BYTE_SECONDS = 0.2, 5e-8
"""What one turn of the loop may take, of that."""
ANSWER_SECONDS = 60.0
RUNS = 10_000
"""How many runs are in the store. What a request costs for each of them shows."""
STARTED_AT_ONCE = 200
TENANTS = ("acme", "other")
COMMON: dict[str, Any] = {
    "id_prefix": f"cost-{TENANTS[1]}-",
    "roots_only": True,
    "status": ["pending"],
    "tag": f"tenant={TENANTS[0]}",
    "tags": {"tenant": TENANTS[0]},
    "workflow": "proof_order",
}
"""Filters by their names; half of the runs or all of them pass each. No run has this tag and this prefix."""
SHOWN = 10
HOOK = "/costs"
_FLOW = program.FLOW.replace("proof_flow", "proof_costs").replace("triggers:", f"triggers:\n  - webhook: {HOOK}")


def _many(part: bytes) -> Callable[[int], bytes]:
    """A list of these, as long as it is to be, but with no more maps and lists than a body may hold."""
    containers = 0 if b'"[' in part else part.count(b"[") + part.count(b"{")
    most = (CONTAINERS_MAX - SPARE) // containers if containers else LARGE_LENGTH
    return lambda length: b"[" + part * min(length // len(part), most) + b"0]"


def _names(length: int) -> bytes:
    return b"{" + b",".join(b'"name_%d":1' % number for number in range(length // 15)) + b"}"


VALUES: dict[str, Callable[[int], bytes]] = {
    "lists": _many(b"[],"),
    "maps": _many(b"{},"),
    "maps with a name": _many(b'{"a":1},'),
    "nested lists": _many(b"[" * 90 + b"]" * 90 + b","),
    "texts": _many(b'"a",'),
    "brackets in texts": _many(b'"[",'),
    "numbers": _many(b"1.5,"),
    "names": _names,
    "a text": lambda length: b'"' + b"x" * length + b'"',
    "escapes": lambda length: b'"' + b"\\u00e9" * (length // 6) + b'"',
    "digits": lambda length: b"1" * length,
    "nulls": _many(b"null,"),
}
"""JSON that stands for the whole body, or for one of its fields."""
BROKEN: dict[str, Callable[[int], bytes]] = {
    "open brackets": lambda length: b"[" * length,
    "open maps": lambda length: b'{"a":' * (length // 5),
    "quotes": lambda length: b"[" * 101 + b'"' + b'\\"' * (length // 2),
    "backslashes": lambda length: b"[" * 101 + b'"' + b"\\" * length,
    "no JSON": lambda length: b"\xff" * length,
}


class Request(msgspec.Struct):
    """What is sent."""

    kind: str
    body: bytes = b""
    query: str = ""
    is_document: bool = False

    @property
    def size(self) -> int:
        """Bytes that its sender has to send."""
        return len(self.body) + len(self.query)

    @property
    def allowed_seconds(self) -> float:
        """What it may cost."""
        if self.is_document:
            return DOCUMENT_SECONDS + DOCUMENT_BYTE_SECONDS * self.size
        return ANY_SECONDS + BYTE_SECONDS * self.size


class Cost(msgspec.Struct):
    """What one request has cost."""

    operation: str
    kind: str
    size: int
    status: int
    seconds: float
    allowed_seconds: float
    turn_seconds: float = 0.0
    """The longest turn of the loop meanwhile: no other request was answered for so long."""

    @property
    def allowed_turn_seconds(self) -> float:
        """What a turn may take."""
        return TURN_SECONDS + TURN_BYTE_SECONDS * self.size

    @property
    def is_fit(self) -> bool:
        """Whether it may cost this much, in all and in one turn, and was answered."""
        is_cheap = self.seconds <= self.allowed_seconds and self.turn_seconds <= self.allowed_turn_seconds
        return is_cheap and self.status < 500

    def __str__(self) -> str:
        cost = f"{self.seconds * 1000:.0f} ms, {self.allowed_seconds * 1000:.0f} ms are the most"
        turn = f"{self.turn_seconds * 1000:.0f} ms of them in one turn, {self.allowed_turn_seconds * 1000:.0f} may be"
        return f"{self.operation}: {self.kind}: {self.status}, {self.size:,} bytes cost {cost}, {turn}"


def searches_for(operation: Operation) -> Iterator[Request]:
    """Requests for which a store looks at many runs, and that find none."""
    for struct, is_body in ((operation.query, False), (operation.body, True)):
        names = set() if struct is None else {each.encode_name for each in msgspec.structs.fields(struct)}
        if "id_prefix" not in names:
            continue
        common = {name: value for name, value in COMMON.items() if name in names}
        for kind, filters in {
            "filters that many runs pass, each": common,
            "a prefix and a tag": {
                name: value for name, value in common.items() if name in ("id_prefix", "tag", "tags")
            },
            "a look for damaged runs": {"status": ["damaged"], "id_prefix": "cost-"},
        }.items():
            if is_body:
                yield Request(kind, msgspec.json.encode(filters))
            else:
                plain = {name: str(it).lower() if isinstance(it, bool) else it for name, it in filters.items()}
                yield Request(kind, query=urlencode(plain, doseq=True))


def requests_for(operation: Operation, body: Any, *, length: int) -> Iterator[Request]:
    """Hostile requests to an operation; `body` is one that it takes."""
    if operation.query is not None:
        for name in (each.encode_name for each in msgspec.structs.fields(operation.query)):
            yield Request(f"{name} is long", query=f"{name}={'9' * QUERY_LENGTH}")
            yield Request(f"{name} many times", query="&".join([f"{name}=a%3Db"] * (QUERY_LENGTH // len(name))))
    yield from searches_for(operation)
    if operation.method == "GET":
        return
    for kind, make in (BROKEN | VALUES).items():
        yield Request(f"a body of {kind}", make(length))
    if operation.body is None:
        return
    plain = body if isinstance(body, dict) else {}
    for name in (each.encode_name for each in msgspec.structs.fields(operation.body)):
        if name == "document":
            for kind in KINDS:
                text = msgspec.json.encode(plain | {name: document(kind, length)})
                yield Request(f"a document with {kind}", text, is_document=True)
        for kind, make in VALUES.items():
            yield Request(f"{kind} as {name}", msgspec.json.encode(plain | {name: msgspec.Raw(make(length))}))


def cpu_seconds(pid: int) -> float:
    """How much of the processors a process has used, to the microsecond: `clock_getcpuclockid` of Linux."""
    return time.clock_gettime((~pid << 3) | 2)


def path_of(operation: Operation, names: Any) -> str:
    """Where an operation is sent; names that are not given are of nothing."""
    path = operation.path
    for name in operation.names:
        path = path.replace(f"{{{name}}}", quote(names.get(name, "nothing"), safe=""))
    return path


def send(port: int, method: str, path: str, request: Request) -> int:
    """The status of the answer; 0 if there is none."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWER_SECONDS)
    headers = {"content-type": "application/json"} if request.body else {}
    target = f"{path}?{request.query}" if request.query else path
    try:
        connection.request(method, target, request.body or None, headers)
        answer = connection.getresponse()
        if answer.headers["content-type"] != EVENT_STREAM:  # That does not end.
            answer.read()
        return answer.status
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        connection.close()


def longest_turn(port: int) -> float:
    """The longest turn of the loop since this was asked before."""
    with urlopen(f"http://127.0.0.1:{port}{TURNS}", timeout=ANSWER_SECONDS) as answer:
        return float(answer.read())


def measured(server: Victim, name: str, method: str, path: str, request: Request) -> Cost:
    """What a request costs."""
    longest_turn(server.port)
    before = cpu_seconds(server.pid)
    status = send(server.port, method, path, request)
    used = cpu_seconds(server.pid) - before
    turn = longest_turn(server.port)
    return Cost(name, request.kind, request.size, status or 599, used, request.allowed_seconds, turn)


async def fill(url: str, runs: int) -> None:
    """Start so many runs of two tenants, which stay as they are."""
    async with Engine(url, worker=False) as engine:
        for first in range(0, runs, STARTED_AT_ONCE):
            numbers = range(first, min(first + STARTED_AT_ONCE, runs))
            await asyncio.gather(*(_start(engine, TENANTS[number % 2], number) for number in numbers))


async def _start(engine: Engine, tenant: str, number: int) -> None:
    options: dict[str, Any] = {"tags": {"tenant": tenant}, "delay": timedelta(days=365)}
    await engine.start(program.proof_order, number, id=f"cost-{tenant}-{number}", **options)


async def measure(url: str, names: list[str], *, length: int, runs: int) -> list[Cost]:
    """Send hostile requests to operations, and to a webhook that asks for no token."""
    costs: list[Cost] = []
    await fill(url, runs)
    async with Engine(url) as engine:
        await engine.flows.apply(_FLOW, by="proof")
        await engine.flows.apply(program.TYPED_FLOW, by="proof")
        with server_of(url) as server:
            for name in names:
                operation = OPERATIONS[name]
                prepare = WANTED.get(name)
                wanted = Wanted() if prepare is None else await prepare(engine, f"cost-{name}")
                path = path_of(operation, wanted.names)
                await asyncio.to_thread(send, server.port, operation.method, path, Request("a first one"))
                began = len(costs)
                for request in requests_for(operation, wanted.body, length=length):
                    await engine.resume(all=True)  # What an earlier request may have paused.
                    given = (server, name, operation.method, path, request)
                    costs.append(await asyncio.to_thread(measured, *given))
                costs += [it async for it in _typed_costs(engine, server, name, length)]
                used = sum(each.seconds for each in costs[began:])
                print(f"{name}: {len(costs) - began} requests, {used:.1f} s", file=sys.stderr, flush=True)
            for kind, make in (BROKEN | VALUES).items():
                given = (server, "a webhook", "POST", f"/webhooks{HOOK}", Request(kind, make(length)))
                costs.append(await asyncio.to_thread(measured, *given))
    return costs


async def _typed_costs(engine: Engine, server: Victim, name: str, length: int) -> AsyncIterator[Cost]:
    """What values cost that fit a type: each is taken, so each has something of its own to be sent to."""
    operation = OPERATIONS[name]
    prepare = TYPED.get(name)
    if prepare is None:
        return
    most = min(length, OPEN_LENGTH) if operation.scope == NO_SCOPE else length
    for number, (kind, make) in enumerate(FITTING.items()):
        ready = await prepare(engine, f"typed-{name}-{number}")
        request = Request(f"{kind} that fit a type", body_of(ready, make(most)))
        given = (server, name, operation.method, path_of(operation, ready.names), request)
        cost = await asyncio.to_thread(measured, *given)
        if cost.status >= 400:
            raise RuntimeError(f"it was to be taken: {cost}")
        yield cost


def prove(
    names: list[str] | None = None, *, length: int = LENGTH, store: str = "sqlite", runs: int = RUNS
) -> list[Cost]:
    """The costs of hostile requests to operations, all of them unless named."""
    with new_store(store) as url:
        return asyncio.run(measure(url, names or sorted(OPERATIONS), length=length, runs=runs))


def main() -> int:
    """Send the requests, and print what is too dear and what is dearest."""
    parser = argparse.ArgumentParser(prog="python -m proof.http.costs", description=__doc__)
    parser.add_argument("--length", type=int, action="append", help="bytes of a hostile body; may be given again")
    add_store(parser)
    parser.add_argument("operations", nargs="*", help="only these")
    given = parser.parse_args()
    lengths = given.length or (LENGTH, LARGE_LENGTH)
    costs = [cost for length in lengths for cost in prove(given.operations, length=length, store=given.store)]
    bad = [each for each in costs if not each.is_fit]
    for each in bad:
        print(each)
    for what, kinds in (("bodies", False), ("documents", True)):
        dear = [each for each in costs if ("a document with" in each.kind) is kinds and each.size]
        print(f"the dearest {what}, of {len(dear):,}:")
        for each in sorted(dear, key=lambda it: it.seconds / it.allowed_seconds, reverse=True)[:SHOWN]:
            print(f"  {each} ({each.seconds / each.size * 1e9:,.0f} ns a byte)")
    print("the longest turns:")
    for each in sorted(costs, key=lambda it: it.turn_seconds / it.allowed_turn_seconds, reverse=True)[:SHOWN]:
        print(f"  {each}")
    total = sum(each.seconds for each in costs)
    size = sum(each.size for each in costs)
    print(
        f"{given.store}: {len(costs):,} requests to {len({each.operation for each in costs})} operations, "
        f"{size / 1e6:.0f} MB: "
        f"{total:.1f} s of the server, {total / max(size, 1) * 1e9:,.0f} ns a byte; {len(bad)} findings"
    )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
