"""The public form: what a value is to people and to other programs is the same at every door, is what the published
schema says, and comes back as the value."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from pathlib import Path, PurePosixPath
from typing import Any, Literal, NamedTuple, TypedDict
from uuid import UUID

import jsonschema_rs
import msgspec
import pydantic
import pytest
from agents import TResponseInputItem
from click.testing import CliRunner
from hypothesis import given
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
)
from pydantic_ai.messages import BinaryContent, ModelMessage, ModelRequest, ModelResponse, TextPart, UserPromptPart

import outlive
from outlive._kernel.journal.described import schemas_of
from outlive._kernel.journal.readable import public_json
from outlive._kernel.journal.tagged import READERS
from outlive._kernel.journal.value import TAGGED, codec_for
from outlive.cli import main
from outlive.codecs import register
from outlive.errors import UnserialisableError
from outlive.http import Api
from outlive.testing import TestEngine
from tests.http.caller import Caller, served
from tests.journal.values import PLAIN, QUICK

AT = datetime(2026, 11, 18, 21, 30, 0, 5, tzinfo=UTC)
LATER = datetime(2026, 11, 18, 21, 30, tzinfo=timezone(timedelta(hours=2)))
SPAN = timedelta(days=2, hours=3, microseconds=7)
ID = UUID("12345678-1234-5678-1234-567812345678")


class Size(Enum):
    """By its value."""

    SMALL = "small"


class Level(IntEnum):
    """By its number."""

    HIGH = 3


class Pair(NamedTuple):
    """As a list."""

    left: Decimal
    right: bytes


class Labels(TypedDict):
    """By its keys."""

    first: date


class Polar:
    """A class that describes itself nowhere."""

    def __init__(self, angle: float, radius: float) -> None:
        self.angle, self.radius = angle, radius

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Polar) and (self.angle, self.radius) == (other.angle, other.radius)

    def __hash__(self) -> int:
        return hash((self.angle, self.radius))


register(
    Polar,
    to=tuple[float, float],
    encode=lambda it: (it.angle, it.radius),
    decode=lambda it: Polar(*it),
)


@dataclass
class Order:
    """Everything that a dataclass can hold."""

    price: Decimal
    at: datetime
    span: timedelta
    raw: bytes
    size: Size
    ids: set[UUID]
    places: tuple[int, str]
    counts: dict[int, Decimal]
    polar: Polar
    many: list[Polar] = field(default_factory=list)


class Packed(msgspec.Struct):
    """A struct."""

    price: Decimal
    raw: bytes


class Line(pydantic.BaseModel):
    """A model inside a model."""

    price: Decimal
    raw: bytes
    kind: Literal["line"] = "line"


class Sums(pydantic.BaseModel):
    """Numbers of any size, and what is not a number to JSON."""

    n: int
    f: float = pydantic.Field(ge=-1)


@dataclass
class Counts:
    """The same, as msgspec reads it."""

    n: int


class Ratio(msgspec.Struct):
    """A field that is a number."""

    ratio: float


class Note(pydantic.BaseModel):
    """Another one, with other fields."""

    text: str
    kind: Literal["note"] = "note"


class Invoice(pydantic.BaseModel):
    """Everything that a model can hold."""

    total: Decimal = pydantic.Field(alias="totalAmount")
    at: datetime
    later: datetime
    day: date
    clock: time
    span: timedelta
    raw: bytes
    maybe: bytes | None
    size: Size
    level: Level
    id: UUID
    tags: set[str]
    places: tuple[int, bytes]
    lines: list[Line | Note]
    counts: dict[int, Decimal]
    grid: dict[tuple[int, int], bytes]
    path: PurePosixPath
    either: bytes | str
    model_config = pydantic.ConfigDict(populate_by_name=True)


INVOICE = Invoice(
    totalAmount=Decimal("2500"),
    at=AT,
    later=LATER,
    day=AT.date(),
    clock=time(1, 2, 3),
    span=SPAN,
    raw=b"\x00\xff",
    maybe=b"\x01",
    size=Size.SMALL,
    level=Level.HIGH,
    id=ID,
    tags={"b", "a"},
    places=(1, b"\x02"),
    lines=[Line(price=Decimal("1E+2"), raw=b"\x03"), Note(text="AA==")],
    counts={7: Decimal("1.50")},
    grid={(1, 2): b"\x04"},
    path=PurePosixPath("/a/b"),
    either="AA==",
)
PUBLIC_INVOICE = {
    "total": "2500",
    "at": "2026-11-18T21:30:00.000005Z",
    "later": "2026-11-18T21:30:00+02:00",
    "day": "2026-11-18",
    "clock": "01:02:03",
    "span": "P2DT10800.000007S",
    "raw": "AP8=",
    "maybe": "AQ==",
    "size": "small",
    "level": 3,
    "id": str(ID),
    "tags": ["a", "b"],
    "places": [1, "Ag=="],
    "lines": [{"price": "1E+2", "raw": "Aw==", "kind": "line"}, {"text": "AA==", "kind": "note"}],
    "counts": {"7": "1.50"},
    "grid": [[[1, 2], "BA=="]],
    "path": "/a/b",
    "either": "AA==",
}
ORDER = Order(
    Decimal("2.50"), AT, SPAN, b"\x00", Size.SMALL, {ID}, (1, "x"), {7: Decimal(1)}, Polar(1, 2), [Polar(0.5, 1)]
)
MESSAGES: list[ModelMessage] = [
    ModelRequest(parts=[UserPromptPart(content=["look", BinaryContent(b"%PDF", media_type="application/pdf")])]),
    ModelResponse(parts=[TextPart(content="I see")]),
]
PUBLIC_LINE = {"price": "1", "raw": "AA==", "kind": "line"}


class NotPaidError(Exception):
    """An error with values in it."""

    def __init__(self) -> None:
        super().__init__("it was not paid")
        self.cents = Decimal(2500)
        self.places = (1, 2)


@outlive.workflow
async def public_talk() -> None:
    """Is sent a model, is asked with one, asks for one, and fails."""
    invoice = await outlive.wait_for_signal("paid", Invoice)
    assert invoice == INVOICE
    answer = await outlive.wait_for_approval("refund", form=Line)
    assert answer.form == Line(price=Decimal(1), raw=b"\x00")
    async for ask in outlive.asks("total", Invoice):
        assert ask.body == INVOICE
        ask.reply(ask.body.total)
        raise NotPaidError


TYPES: dict[str, tuple[Any, Any, Any]] = {
    "int": (int, 7, 7),
    "large int": (int, 2**70, 2**70),
    "float": (float, 0.5, 0.5),
    "large int in a model": (Sums, Sums(n=-(2**70), f=0.5), {"n": -(2**70), "f": 0.5}),
    "inf in a model": (Sums, Sums(n=1, f=math.inf), {"n": 1, "f": "Infinity"}),
    "large int in a dataclass": (Counts, Counts(2**70), {"n": 2**70}),
    "decimal": (Decimal, Decimal("2500"), "2500"),
    "datetime": (datetime, AT, "2026-11-18T21:30:00.000005Z"),
    "date": (date, AT.date(), "2026-11-18"),
    "time": (time, time(1, 2, 3), "01:02:03"),
    "timedelta": (timedelta, SPAN, "P2DT10800.000007S"),
    "negative timedelta": (timedelta, -SPAN, "-P2DT10800.000007S"),
    "bytes": (bytes, b"\x00\xff", "AP8="),
    "uuid": (UUID, ID, str(ID)),
    "enum": (Size, Size.SMALL, "small"),
    "int enum": (Level, Level.HIGH, 3),
    "set": (set[int], {2, 1}, [1, 2]),
    "frozenset": (frozenset[Decimal], frozenset({Decimal(1)}), ["1"]),
    "tuple": (tuple[int, bytes], (1, b"\x00"), [1, "AA=="]),
    "dict": (dict[UUID, timedelta], {ID: SPAN}, {str(ID): "P2DT10800.000007S"}),
    "named tuple": (Pair, Pair(Decimal(1), b"\x00"), ["1", "AA=="]),
    "typed dict": (Labels, {"first": AT.date()}, {"first": "2026-11-18"}),
    "optional": (Decimal | None, Decimal(1), "1"),
    "struct": (Packed, Packed(Decimal(1), b"\x00"), {"price": "1", "raw": "AA=="}),
    "dataclass": (
        Order,
        ORDER,
        {
            "price": "2.50",
            "at": "2026-11-18T21:30:00.000005Z",
            "span": "P2DT10800.000007S",
            "raw": "AA==",
            "size": "small",
            "ids": [str(ID)],
            "places": [1, "x"],
            "counts": {"7": "1"},
            "polar": [1.0, 2.0],
            "many": [[0.5, 1.0]],
        },
    ),
    "model": (Invoice, INVOICE, PUBLIC_INVOICE),
    "list of models": (list[Invoice], [INVOICE], [PUBLIC_INVOICE]),
    "union of models": (
        Line | Note,
        Line(price=Decimal(1), raw=b"\x00"),
        {"price": "1", "raw": "AA==", "kind": "line"},
    ),
    "own class": (Polar, Polar(1, 2), [1.0, 2.0]),
    "list of an own class": (list[Polar], [Polar(1, 2)], [[1.0, 2.0]]),
}
UNTYPED: dict[str, tuple[Any, Any]] = {
    "tuple": ((1, (2,)), [1, [2]]),
    "set": ({2, 1}, [1, 2]),
    "dict of numbers": ({1: "a", None: "b"}, {"1": "a", "null": "b"}),
    "dict of one text twice": ({1: "a", "1": "b"}, [[1, "a"], ["1", "b"]]),
    "dict of tuples": ({(1, 2): Decimal(3)}, [[[1, 2], "3"]]),
    "not finite": ([math.inf, -math.inf], ["Infinity", "-Infinity"]),
    "large int": (2**70, 2**70),
    "bytes": ([b"\x00", bytearray(b"\x00")], ["AA==", "AA=="]),
    "times": ([LATER, AT.date(), SPAN], ["2026-11-18T21:30:00+02:00", "2026-11-18", "P2DT10800.000007S"]),
    "a key that looks like a tag": ({"$": ["tuple", [1]]}, {"$": ["tuple", [1]]}),
    "nothing special": ({"a": [1, "b", None]}, {"a": [1, "b", None]}),
}


def named(name: str) -> str:
    """The name of the workflow for an entry."""
    return f"public.{name.replace(' ', '_')}"


def echo_of(name: str, kind: Any) -> Any:
    """A workflow that publishes, emits and returns what it is given."""

    async def echo(value: Any) -> Any:
        outlive.publish(value=value)
        await outlive.emit("values", value)
        return value

    echo.__qualname__ = "echo"
    echo.__annotations__ = {"value": kind, "return": kind}
    return outlive.workflow(name=named(name))(echo)


ECHOES = {name: echo_of(name, kind) for name, (kind, _, _) in TYPES.items()}
UNTYPED_ECHO = echo_of("untyped", Any)


@pytest.fixture
async def engine() -> AsyncIterator[TestEngine]:
    """An engine."""
    async with TestEngine() as engine:
        yield engine


async def shown(api: Caller, run_id: str) -> dict[str, Any]:
    """What the doors show of the value of a run that returned, published and emitted it."""
    streamed = await api.follow(f"/api/v1/runs/{run_id}/streams/values", until=bool)
    history = (await api.get(f"/api/v1/runs/{run_id}/history")).data["items"]
    events = {it["type"]: it["data"] for it in history}
    sent = events["RunCreated"]["input"]
    return {
        "result": (await api.get(f"/api/v1/runs/{run_id}/result")).data["result"],
        "published": (await api.get(f"/api/v1/runs/{run_id}/published")).data["fields"]["value"],
        "stream": streamed[0].data["value"],
        "argument in an event": sent[0] if isinstance(sent, list) else sent["value"],
        "published in an event": events["RunPublished"]["payload"]["value"],
        "result in an event": events["RunSucceeded"]["result"],
    }


async def test_every_door_shows_one_form_which_fits_the_schema_and_comes_back(engine: TestEngine) -> None:
    """From Python to the store, over HTTP, by the published schema, through a connection, and as an argument again."""
    api = Caller(Api(engine))
    async with served(Api(engine)) as port, outlive.connect(f"http://127.0.0.1:{port}") as remote:
        for number, (name, (kind, value, public)) in enumerate(TYPES.items()):
            run = await remote.start(ECHOES[name], value, id=f"typed-{number}")
            again = await remote.start(named(name), {"value": public}, id=f"named-{number}")
            assert (await run.result(), await again.result()) == (value, public), name
            assert await engine.get(run.id).result() == await engine.get(again.id).result(), name
            seen = [await shown(api, each.id) for each in (run, again)]
            assert [each for one in seen for each in one.values()] == [public] * 12, (name, seen)
            assert codec_for(kind).decode(json.dumps(public).encode(), name) == value
            schema = (await api.get(f"/api/v1/workflows/{named(name)}")).data["items"][0]
            jsonschema_rs.validate(schema["result"] or {}, public)
            jsonschema_rs.validate(schema["arguments"], {"value": public})


async def test_values_without_a_type_have_the_same_form(engine: TestEngine) -> None:
    """No tag of the store is seen at any door; what was stored comes back exactly in Python."""
    api = Caller(Api(engine))
    for number, (name, (value, public)) in enumerate(UNTYPED.items()):
        run = await engine.start(UNTYPED_ECHO, value, id=f"r-{number}")
        assert await run.result() == value, name
        seen = await shown(api, run.id)
        assert list(seen.values()) == [public] * 6, (name, seen)


async def test_values_that_a_run_is_sent_and_sends_have_the_same_form(engine: TestEngine) -> None:
    """Signals, asks and their answers, approvals, items of batches, attributes of errors."""
    api = Caller(Api(engine))
    run = await engine.start(public_talk, id="talk")
    await run.signal("paid", INVOICE)
    await engine.settle()
    approved = await api.post("/api/v1/runs/talk/approvals/refund/approve", {"form": PUBLIC_LINE})
    answer = await api.post("/api/v1/runs/talk/asks/total", {"body": PUBLIC_INVOICE})
    with pytest.raises(outlive.errors.RunFailedError):
        await run.result()
    batch = await engine.start_batch(ECHOES["model"], [INVOICE], id="b")
    await batch.results()
    items = (await api.get("/api/v1/batches/b/items")).data["items"]
    events = {it["type"]: it["data"] for it in (await api.get("/api/v1/runs/talk/history")).data["items"]}

    assert (approved.status, answer.data["answer"]) == (200, "2500")
    assert events["SignalReceived"]["payload"] == PUBLIC_INVOICE
    assert events["ApprovalDecided"]["payload"]["form"] == PUBLIC_LINE
    assert events["AskReceived"]["payload"] == PUBLIC_INVOICE
    assert events["RunFailed"]["failure"]["attributes"] == {"cents": "2500", "places": [1, 2]}
    assert [it["result"] for it in items] == [PUBLIC_INVOICE]


@pytest.mark.parametrize(("kind", "value"), [(float, math.inf), (Ratio, Ratio(math.inf)), (list[float], [-math.inf])])
def test_number_that_is_not_finite_is_refused_where_the_schema_says_number(kind: Any, value: Any) -> None:
    """Such a field has no other form than a number, and JSON has no number for it."""
    with pytest.raises(UnserialisableError, match="Expected `float`"):
        codec_for(kind).encode(value, "ratio")


def test_messages_of_a_framework_come_back_from_their_public_form() -> None:
    """A union of dataclasses that pydantic tells apart, with bytes inside."""
    codec = codec_for(list[ModelMessage])
    public = public_json(codec.encode(MESSAGES, "messages"))
    (schema,) = schemas_of([list[ModelMessage]])

    assert public[0]["parts"][0]["content"][1]["data"] == "JVBERg=="
    assert codec.decode(json.dumps(public).encode(), "messages") == MESSAGES
    jsonschema_rs.validate(schema, public)


def test_messages_of_langchain_come_back() -> None:
    """`AnyMessage`, a union of models that a function of LangChain tells apart, comes back with each of its classes."""
    said = [
        SystemMessage("be brief"),
        HumanMessage(["look", {"type": "image_url", "image_url": "https://example.com/a.png"}], id="m-1"),
        AIMessage("", tool_calls=[ToolCall(name="look", args={"at": [1]}, id="c-1")], response_metadata={"cost": 0.5}),
        ToolMessage("a cat", tool_call_id="c-1", status="error"),
    ]
    codec = codec_for(list[AnyMessage])
    data = codec.encode(said, "messages")

    assert codec.decode(data, "messages") == codec.decode(json.dumps(public_json(data)).encode(), "messages") == said
    assert list(map(type, codec.decode(data, "messages"))) == list(map(type, said))


def test_refusal_of_a_message_as_its_base_names_the_union_to_use() -> None:
    """`list[BaseMessage]` could not hold what its messages are; the error names the type that can."""
    with pytest.raises(UnserialisableError, match=r"annotate AnyMessage of langchain_core\.messages: BaseMessage has"):
        codec_for(list[BaseMessage]).encode([HumanMessage("hi")], "messages")


def test_messages_of_openai_agents_come_back() -> None:
    """`TResponseInputItem` is a union of some thirty typed dicts, of which a conversation has several."""
    said: list[TResponseInputItem] = [
        {"role": "user", "content": "hi"},
        {"role": "user", "content": [{"type": "input_text", "text": "and?"}]},
        {"type": "function_call", "call_id": "c-1", "name": "look", "arguments": '{"at": 1}'},
        {"type": "function_call_output", "call_id": "c-1", "output": "a cat"},
    ]
    codec = codec_for(list[TResponseInputItem])
    data = codec.encode(said, "items")

    assert codec.decode(data, "items") == codec.decode(json.dumps(public_json(data)).encode(), "items") == said


@QUICK
@given(PLAIN)
def test_no_value_leaves_with_a_tag(value: Any) -> None:
    """Whatever it is, JSON can say its public form."""
    public = public_json(TAGGED.encode(value, "it"))

    json.dumps(public, allow_nan=False)
    assert not [tag for tag in tags_in(public) if tag in READERS]


def tags_in(public: Any) -> list[str]:
    """What looks like a tag of the store."""
    if isinstance(public, list):
        return [tag for each in public for tag in tags_in(each)]
    if not isinstance(public, dict):
        return []
    own = [str(public["$"][0])] if public.keys() == {"$"} and isinstance(public["$"], list) and public["$"] else []
    return own + [tag for each in public.values() for tag in tags_in(each)]


def test_the_command_line_shows_the_same(tmp_path: Path) -> None:
    """A run that another process has finished."""

    async def finish() -> None:
        async with outlive.Engine(f"sqlite:{tmp_path}/s.db") as engine:
            await (await engine.start(ECHOES["model"], INVOICE, id="r")).result()

    asyncio.run(finish())
    ran = CliRunner().invoke(main, ["runs", "show", "r", "--json", "--store", f"sqlite:{tmp_path}/s.db"])

    found = json.loads(ran.stdout)
    assert (found["result"], found["published"]["value"]) == (PUBLIC_INVOICE, PUBLIC_INVOICE)
