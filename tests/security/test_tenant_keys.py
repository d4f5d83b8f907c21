"""Keys for runs with a tag: one tenant of a store sees and changes nothing of another, whichever operation it uses.

The matrix is made of the table of operations, from which the OpenAPI document is made too: an operation that is added
is in here, and needs a body below if it takes one and is open to such keys.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, get_args

import msgspec
import pytest

import outlive
from outlive._kernel.model.run import is_internal
from outlive.errors import InvalidArgumentError, RunNotFoundError
from outlive.http import Api, ApiLimits
from outlive.http.operation import OPERATIONS, Operation
from outlive.http.principal import WITHIN_TAGS
from outlive.testing import TestEngine
from tests.engine.inside import find_key, row_of, store_of
from tests.http.caller import Answer, Caller

FAR = "192.0.2.7"
MARK = "of-b-only"
"""It is in everything of tenant b that is not an id."""
LIMITS = ApiLimits(wait_seconds_max=0.0, look_seconds=0.0)
RUNS = "/api/v1/runs"
KINDS = ("waits", "ended", "failed", "parent", "batch")
NAMES = {"name": "tagged_waits", "seq": "0", "field": "input", "key": "k"}
"""What stands in paths beside ids: names of code, which all tenants share."""
CLOSED = sorted(it.name for it in OPERATIONS.values() if it.reach not in WITHIN_TAGS)
OF_RUNS = sorted(it.name for it in OPERATIONS.values() if it.reach == "run")
OPEN = sorted(it.name for it in OPERATIONS.values() if it.reach in WITHIN_TAGS - {"run"} and it.scope != "none")
STARTED: dict[str, Any] = {"workflow": "tagged_waits", "arguments": ["x"]}
FILTER: dict[str, Any] = {"status": ["waiting", "failed", "succeeded", "parked", "cancelled"]}
BODIES: dict[str, Any] = {
    "runs.ask": {"body": 1, "key": "k", "wait": 0, "start": STARTED},
    "bulk.cancel": FILTER | {"roots_only": False},
    "flows.check": {"document": "name: x\nsteps: {a: {use: sleep, with: {seconds: 1}}}"},
    "approvals.create_link": {"approved": True, "by": "a"},
    "bulk.pause": FILTER,
    "bulk.purge": {"status": ["succeeded", "failed"], "older_than": 0},
    "bulk.resume": FILTER,
    "bulk.retry": FILTER | {"roots_only": False},
    "runs.change": {"tags": {"stage": "held"}},
    "runs.signal": {"start": STARTED},
    "runs.signal_many": {"signals": [{"run_id": "theirs", "name": "go"}]},
    "batches.start": {"workflow": "tagged_waits", "rows": ["x"]},
    "runs.start": STARTED,
    "runs.start_many": {"starts": [STARTED, STARTED]},
}


@outlive.step
async def tagged_says(note: str) -> str:
    """Emits, and fails if it is to."""
    outlive.emit("words", note)
    if note.startswith("fail"):
        raise ValueError(note)
    return note


@outlive.workflow
async def tagged_waits(note: str) -> str:
    """Shows its note in every way, and waits for a person."""
    outlive.publish(note=note)
    await tagged_says(note)
    await outlive.wait_for_approval("refund", title=note)
    return note


@outlive.workflow
async def tagged_ends(note: str) -> str:
    """Ends at once."""
    return await tagged_says(note)


@outlive.workflow
async def tagged_strays(note: str, tenant: str) -> str:
    """A child with the tag of another tenant."""
    outlive.set_tags(tenant=tenant)
    return await tagged_waits(note)


@outlive.workflow
async def tagged_parent(note: str, tenant: str) -> str:
    """Has a child that strays."""
    return await tagged_strays(note, tenant)


async def furnish(engine: TestEngine, tenant: str, other: str, note: str) -> None:
    """Runs of every kind, with the tag of a tenant."""
    tags = {"tenant": tenant, "note": note}
    await engine.start(tagged_waits, note, id=f"{tenant}-waits", tags=tags)
    await engine.start(tagged_ends, note, id=f"{tenant}-ended", tags=tags)
    await engine.start(tagged_ends, f"fail {note}", id=f"{tenant}-failed", tags=tags)
    await engine.start(tagged_parent, note, other, id=f"{tenant}-parent", tags=tags)
    await engine.start_batch(tagged_waits, [note, note], id=f"{tenant}-batch", tags=tags)


@pytest.fixture
async def engine() -> AsyncIterator[TestEngine]:
    """An engine with the runs of two tenants."""
    async with TestEngine() as engine:
        await furnish(engine, "b", "a", MARK)
        await furnish(engine, "a", "b", "mine")
        await engine.settle()
        yield engine


async def caller(engine: TestEngine, tenant: str = "a", **options: Any) -> Caller:
    """A caller with a key for the runs of a tenant."""
    bounds = {"scope": "admin", "tags": {"tenant": tenant}} | options
    key = await engine.keys.create("dashboard", **bounds)
    return Caller(Api(engine, auth="keys", limits=LIMITS), key=key.secret, address=FAR)


async def ids_of(engine: TestEngine, tenant: str) -> list[str]:
    """The ids of all runs of a tenant: also of children, and of what the engine makes."""
    runs = await engine.list(limit=1000, internal=True)
    return [run.id for run in runs if run.root_id.startswith(f"{tenant}-")]


async def state_of(engine: TestEngine, tenant: str) -> dict[str, object]:
    """Everything of a tenant that an operation could change."""
    runs = [await row_of(engine, run_id) for run_id in await ids_of(engine, tenant)]
    inbox = await store_of(engine).read_inbox([run.journal for run in runs])
    return {run.id: (run, len(inbox.get(run.journal, ()))) for run in runs}


async def ask(caller: Caller, it: Operation, run_id: str = "", key: str = "") -> Answer:
    """One request for an operation, with all that it takes."""
    path = it.path.format(**{**dict.fromkeys(it.names, "x"), **NAMES, it.run_name: run_id.replace("~", "%7E")})
    headers = {"idempotency-key": key} if key else {}
    # What is followed does not end.
    return await caller.send(it.method, path, BODIES.get(it.name), headers=headers, leave_when=_has_begun)


def _has_begun(body: bytes) -> bool:
    return b"event: list" in body or b"event: journal" in body


# -- The matrix -----------------------------------------------------------------------------------------------------


def test_every_operation_that_takes_a_body_is_asked_with_one() -> None:
    """Else it would be refused for its body, which shows nothing."""
    wanted = {name for name in (*OF_RUNS, *OPEN) if (it := OPERATIONS[name]).body and not it.is_optional_body}
    assert wanted <= set(BODIES)
    assert set(BODIES) <= {*OF_RUNS, *OPEN}


@pytest.mark.parametrize("name", CLOSED)
async def test_an_operation_that_cannot_be_bound_to_a_tag_is_refused(engine: TestEngine, name: str) -> None:
    """An operation that cannot be bound to a tag is refused for a key with a tag before its request is read.
    [S3 S33]"""
    answer = await ask(await caller(engine), OPERATIONS[name], "b-waits")

    assert (answer.status, answer.code) == (403, "forbidden")
    assert MARK.encode() not in answer.body


@pytest.mark.parametrize("name", OF_RUNS)
async def test_a_run_of_another_tenant_is_not_there(engine: TestEngine, name: str) -> None:
    """Whether it is a root, a child, one that has a tag of the asker, or a chunk of a batch; and nothing of it changes,
    nor is a run started in its place. [S3 S12 S33]"""
    a, before = await caller(engine), await state_of(engine, "b")
    ids = await ids_of(engine, "b")
    assert len(ids) > len(KINDS) + 2
    for run_id in ids:
        answer = await ask(a, OPERATIONS[name], run_id)
        assert (answer.status, answer.code) == (404, "run_not_found"), run_id
        assert MARK.encode() not in answer.body
        assert "tenant" not in answer.body.decode().replace(run_id, "")
    await engine.settle()

    assert await state_of(engine, "b") == before
    assert not [run.id for run in await engine.list(limit=1000) if not run.tags and run.number == 0]


@pytest.mark.parametrize("key", ["", "k"])
@pytest.mark.parametrize("name", OPEN)
async def test_no_operation_shows_or_changes_anything_of_another_tenant(
    engine: TestEngine, name: str, key: str
) -> None:
    """Lists, counts, what is followed, verbs for many runs and starts; what is started has the tag. [S3 S33]"""
    a, before = await caller(engine), await state_of(engine, "b")
    answer = await ask(a, OPERATIONS[name], key=key)
    await engine.settle()

    assert answer.status < 300, answer.body
    assert MARK.encode() not in answer.body
    assert not [run_id for run_id in before if f'"{run_id}"'.encode() in answer.body]
    assert await state_of(engine, "b") == before
    roots = [run for run in await engine.list(limit=1000, roots_only=True) if not is_internal(run.workflow)]
    assert {run.tags.get("tenant") for run in roots} <= {"a", "b"}
    assert {run.id for run in roots if run.tags.get("tenant") == "b"} <= set(before)


@pytest.mark.parametrize("name", OF_RUNS)
async def test_own_runs_are_there(engine: TestEngine, name: str) -> None:
    """For every operation on a run: a key that opens nothing would keep all secrets. [S3]"""
    a = await caller(engine)
    it = OPERATIONS[name]
    ids = ["a-batch"] if it.run_name == "batch_id" else ["a-waits", "a-failed", "a-ended"]
    answers = [await ask(a, it, run_id) for run_id in ids]

    assert [] == [it.body for it in answers if it.status in (401, 403) or it.status >= 500]
    missing = [it for it in answers if it.status == 404 and it.code == "run_not_found"]
    assert not missing


async def test_a_tenant_cannot_give_its_run_to_another_tenant(engine: TestEngine) -> None:
    """Other tags of the run are its own to change; the tag by which the key has the run is not. [S33]"""
    a = await caller(engine)
    for tags in ({"tenant": "b"}, {"tenant": None}):
        refused = await a.post("/api/v1/runs/a-waits/change", {"tags": tags})
        assert (refused.status, refused.code) == (409, "run_not_changeable")
    assert (await a.post("/api/v1/runs/a-waits/change", {"tags": {"stage": "held"}})).status == 202
    await engine.settle()
    assert (await engine.info("a-waits")).tags["tenant"] == "a"


async def test_own_runs_are_in_lists(engine: TestEngine) -> None:
    """Every list and count has them, and the answer to who asks says why it has no others. [S33]"""
    a = await caller(engine, scope="viewer")
    listed = (await a.get(RUNS)).data["items"]
    counted = (await a.get("/api/v1/runs/count")).data["count"]
    counts = (await a.get("/api/v1/runs/count/groups?by=queue")).data["groups"]
    batches = (await a.get("/api/v1/batches")).data["items"]
    approvals = (await a.get("/api/v1/approvals")).data["items"]
    me = (await a.get("/api/v1/me")).data

    assert {f"a-{kind}" for kind in KINDS} == {run["id"] for run in listed}
    assert counted == len(KINDS) == sum(group["count"] for group in counts.values())
    assert ["a-batch"] == [batch["id"] for batch in batches]
    assert "a-waits" in {approval["run_id"] for approval in approvals}
    assert me["tags"] == {"tenant": "a"}
    assert {OPERATIONS[name].reach for name in me["operations"]} <= WITHIN_TAGS


@pytest.mark.parametrize(
    "path", [RUNS, "/api/v1/runs/count", "/api/v1/runs/count/groups", "/api/v1/runs/follow", "/api/v1/batches"]
)
async def test_the_tag_of_another_tenant_cannot_be_asked_for(engine: TestEngine, path: str) -> None:
    """Nor in the place of one's own, whichever comes first; another tag narrows. [S33]"""
    a = await caller(engine)
    both = "?tag=tenant%3Da&tag=tenant%3Db", "?tag=tenant%3Db&tag=tenant%3Da"
    for query in ("?tag=tenant%3Db", *both[:1]):
        refused = await a.get(path + query)
        assert (refused.status, refused.code) == (403, "forbidden")
        assert MARK.encode() not in refused.body
    if "follow" not in path:
        assert (await a.get(f"{path}?tag=note%3D{MARK}")).data in (
            {"items": [], "next": None, "previous": None},
            {"count": 0, "at_least": False},
            {"groups": {}},
        )


@pytest.mark.parametrize("name", ["bulk.cancel", "bulk.retry", "bulk.pause", "bulk.purge", "bulk.resume"])
async def test_verbs_for_many_runs_reach_own_runs_only(engine: TestEngine, name: str) -> None:
    """Named by the tag of another tenant, they are refused. [S33]"""
    a, path = await caller(engine), OPERATIONS[name].path
    refused = await a.post(path, FILTER | {"tags": {"tenant": "b"}})
    preview = await a.post(path, BODIES[name] | {"dry_run": True, "tags": {"note": "mine"}})

    assert (refused.status, refused.code) == (403, "forbidden")
    assert preview.status == 200
    if name != "bulk.purge":
        assert {item["id"][0] for item in preview.data["items"]} <= {"a"}


# -- Starts ---------------------------------------------------------------------------------------------------------


async def test_every_run_that_is_started_has_the_tag(engine: TestEngine) -> None:
    """By whichever operation, and beside the tags that it asks for. [S33]"""
    a = await caller(engine, scope="operator")
    await engine.cancel("a-batch")
    await engine.settle()
    made = [
        await a.post(RUNS, STARTED | {"tags": {"more": "1"}}),
        await a.post(RUNS, STARTED | {"tags": {"tenant": "a"}}),
        await a.post("/api/v1/batches", BODIES["batches.start"]),
        await a.post("/api/v1/batches/a-batch/retry"),
        await a.post(f"{RUNS}/a-ended/fork"),
    ]
    assert [201] * 5 == [it.status for it in made], [it.body for it in made]
    ids = [str(it.data["id"]) for it in made]
    for verb in ("signals", "asks"):
        sent = await a.post(
            f"{RUNS}/new-{verb}/{verb}/go", {"start": STARTED} | ({"wait": 0} if verb == "asks" else {})
        )
        assert sent.status == 202
        ids.append(f"new-{verb}")

    tags = [(await engine.get(run_id).info()).tags for run_id in ids]
    assert ["a"] * len(ids) == [it["tenant"] for it in tags]
    assert tags[0]["more"] == "1"


async def test_no_way_to_start_a_run_of_a_tenant_forgets_its_tag(
    engine: TestEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that does is closed: the tags are looked at again where the run is created. [S33]"""
    monkeypatch.setattr("outlive._kernel.client.starting.own_tags", lambda where, workflow, wanted: dict(wanted or {}))
    with engine.audit.acting("a", tags={"tenant": "a"}):
        for tags in (None, {"tenant": "b"}):
            with pytest.raises(RunNotFoundError):
                await engine.start(tagged_ends, "x", id="new", tags=tags)
            with pytest.raises(RunNotFoundError):
                await engine.signal("new", "go", start=(tagged_ends, "x"))
        await engine.start(tagged_ends, "x", id="new", tags={"tenant": "a"})


@pytest.mark.parametrize("place", ["runs", "batches", "bulk/start"])
async def test_no_run_is_started_for_another_tenant(engine: TestEngine, place: str) -> None:
    """The tag is that of the key. [S33]"""
    a, before = await caller(engine), await engine.count(internal=True)
    body = BODIES["batches.start" if place == "batches" else "runs.start"] | {"tags": {"tenant": "b"}}
    if place == "bulk/start":
        body = {"starts": [STARTED, body]}
    answer = await a.post(f"/api/v1/{place}", body)

    assert (answer.status, answer.code) == (422, "invalid_argument")
    assert await engine.count(internal=True) == before


TAKE_HEADERS = {"runs.start", "runs.start_many", "batches.start", "runs.signal", "runs.signal_many", "runs.ask"}


def test_every_operation_that_takes_headers_of_a_run_is_looked_at() -> None:
    """In its body, or in the start of a message. One that comes is asked below."""
    takers = {it.name for it in OPERATIONS.values() if it.reach in WITHIN_TAGS and "headers" in str(fields_in(it.body))}

    assert takers == TAKE_HEADERS


def fields_in(kind: Any) -> list[Any]:
    """The names of the fields of a struct, and of structs in it."""
    found: list[Any] = []
    for field in msgspec.structs.fields(kind) if isinstance(kind, type) and issubclass(kind, msgspec.Struct) else ():
        found += [field.name, *(fields_in(each) for each in parts_of(field.type))]
    return found


def parts_of(kind: Any) -> list[Any]:
    """A type and the types in it, at whatever depth of lists and unions."""
    return [kind, *(it for each in get_args(kind) for it in parts_of(each))]


@pytest.mark.parametrize("door", sorted(TAKE_HEADERS))
async def test_headers_name_the_tenant_of_the_key(engine: TestEngine, door: str) -> None:
    """By the headers of their run, of which the guide says that middleware takes the tenant: a caller cannot name
    another one, and need not name its own. [S33]"""
    a, place = await caller(engine, scope="operator"), f"{RUNS}/new"
    path = {
        "runs.start": RUNS,
        "runs.start_many": "/api/v1/bulk/start",
        "batches.start": "/api/v1/batches",
        "runs.signal": f"{place}/signals/go",
        "runs.signal_many": "/api/v1/bulk/signal",
    }.get(door)

    async def send(headers: dict[str, str]) -> Answer:
        if door == "runs.start_many":
            return await a.post(path or "", {"starts": [STARTED | {"headers": headers}]})
        if door == "runs.signal_many":
            start = STARTED | {"headers": headers}
            return await a.post(path or "", {"signals": [{"run_id": "new", "name": "go", "start": start}]})
        body = (
            BODIES[door] | {"start": STARTED | {"headers": headers}}
            if door not in ("runs.start", "batches.start")
            else BODIES[door] | {"headers": headers}
        )
        return await a.post(path or f"{place}/asks/go", body | ({"wait": 0} if path is None else {}))

    refused = await send({"tenant": "b"})
    assert (refused.status, refused.code) == (422, "invalid_argument")
    before = {run.id for run in await engine.list(limit=1000)}
    assert (await send({"more": "1"})).status in (201, 202)
    (made,) = [run.id for run in await engine.list(limit=1000, roots_only=True) if run.id not in before]
    created = (await engine.get(made).history())[0]
    assert created.data["headers"] == {"tenant": "a", "more": "1"}


@pytest.mark.parametrize("on_conflict", ["attach", "attach_open", "replace", "reject"])
async def test_a_start_takes_no_id_from_another_tenant(engine: TestEngine, on_conflict: str) -> None:
    """Runs of the same workflow, which a key for workflows could have. [S3 S33]"""
    a, before = await caller(engine), await state_of(engine, "b")
    answers = [
        await a.post(RUNS, STARTED | {"id": "b-waits", "on_conflict": on_conflict}),
        await a.post(
            "/api/v1/bulk/start", {"starts": [STARTED, STARTED | {"id": "b-waits", "on_conflict": on_conflict}]}
        ),
        await a.post("/api/v1/batches", BODIES["batches.start"] | {"id": "b-batch"}),
        await a.post("/api/v1/batches/a-batch/retry", {"id": "b-batch"}),
        await a.post(f"{RUNS}/a-ended/fork", {"id": "b-ended"}),
    ]

    assert [(409, "run_exists")] * 5 == [(answer.status, answer.code) for answer in answers]
    assert await state_of(engine, "b") == before


async def test_keys_of_requests_of_two_tenants_are_apart(engine: TestEngine) -> None:
    """Two tenants call their keys the same, and their programs count their requests. [S33]"""
    a, b = await caller(engine), await caller(engine, "b")
    headers = {"idempotency-key": "1"}
    made = [await each.post(RUNS, STARTED, headers=headers) for each in (a, b, a, b)]
    done = [await each.post(f"{RUNS}/{name}-waits/cancel", headers=headers) for each, name in ((a, "a"), (b, "b"))]

    assert [201] * 4 + [202] * 2 == [it.status for it in (*made, *done)]
    ids = [str(it.data["id"]) for it in made]
    assert (ids[:2], len(set(ids))) == (ids[2:], 2)
    assert ["a", "b"] == [(await engine.get(run_id).info()).tags["tenant"] for run_id in ids[:2]]


async def test_a_message_does_not_reach_a_run_of_another_tenant_that_takes_its_id_meanwhile(engine: TestEngine) -> None:
    """The id was free when the sender was checked, and the store looks again when it writes. [S3 S33]"""
    key = await engine.keys.create("a", scope="operator", tags={"tenant": "a"})
    api = Api(engine, auth="keys")

    async def late(scope: Any, receive: Any, send: Any) -> None:
        async def receive_late() -> Any:
            await engine.start(tagged_waits, MARK, id="b-late", tags={"tenant": "b"})
            return await receive()

        await api(scope, receive_late, send)

    answer = await Caller(late, key=key.secret, address=FAR).post(f"{RUNS}/b-late/signals/go", {"start": STARTED})

    assert (answer.status, answer.code) == (404, "run_not_found")
    await engine.settle()
    theirs = await row_of(engine, "b-late")
    assert await store_of(engine).read_inbox([theirs.journal]) == {}


@pytest.mark.parametrize("decided", [True, False])
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("approvals/refund/approve", {"comment": "x"}),
        ("approvals/refund/reject", {}),
        ("approvals/other/approve", {}),
        ("asks/question", {"body": 1, "key": "k", "wait": 0}),
        ("retry", {}),
        ("skip", {}),
        ("fork", {"at": "nothing"}),
    ],
)
async def test_no_answer_tells_of_a_run_of_another_tenant_that_takes_the_id_meanwhile(
    engine: TestEngine, path: str, body: Any, *, decided: bool
) -> None:
    """A decision that was there, or why there is none: the id was free, or of an own run, when the body began to
    arrive. [S3 S12 S33]"""
    key = await engine.keys.create("a", scope="operator", tags={"tenant": "a"})
    api = Api(engine, auth="keys", limits=LIMITS)

    async def late(scope: Any, receive: Any, send: Any) -> None:
        async def receive_late() -> Any:
            await engine.start(tagged_waits, MARK, id="a-waits", tags={"tenant": "b"}, on_conflict="replace")
            await engine.settle()
            if decided:
                await engine.approvals.reject("a-waits", "refund", by=MARK, comment=MARK)
                await engine.settle()
            return await receive()

        await api(scope, receive_late, send)

    answer = await Caller(late, key=key.secret, address=FAR).post(f"{RUNS}/a-waits/{path}", body)

    assert (answer.status, answer.code) == (404, "run_not_found")
    assert MARK.encode() not in answer.body
    assert b"refund" not in answer.body


async def test_a_run_that_another_tenant_gets_is_followed_no_longer(engine: TestEngine) -> None:
    """Its own run was replaced by one of another tenant, of the same workflow. [S3 S12 S33]"""
    a = await caller(engine, scope="viewer")
    going: list[asyncio.Future[object]] = []

    async def replace() -> None:
        await engine.start(tagged_waits, MARK, id="a-waits", tags={"tenant": "b"}, on_conflict="replace")
        await engine.settle()

    def look(seen: bytes) -> bool:
        if not going:
            going.append(asyncio.ensure_future(replace()))
        return False

    answer = await asyncio.wait_for(a.send("GET", f"{RUNS}/a-waits/follow", leave_when=look), 20)
    await going[0]

    assert answer.status == 200
    assert MARK.encode() not in answer.body


@pytest.mark.parametrize("name", OF_RUNS)
async def test_a_run_whose_code_gives_it_to_another_tenant_is_not_there(engine: TestEngine, name: str) -> None:
    """From then on, whatever key the asker's tenant used before. [S3 S33]"""
    a = await caller(engine)
    await engine.start(tagged_strays, MARK, "b", id="a-strays", tags={"tenant": "a"})
    await engine.settle()
    answer = await ask(a, OPERATIONS[name], "a-strays")

    assert (answer.status, answer.code) == (404, "run_not_found")
    assert MARK.encode() not in answer.body
    assert "a-strays" not in {run["id"] for run in (await a.get(RUNS)).data["items"]}


@pytest.mark.parametrize("path", ["a-waits/follow", "a-waits/streams/words"])
async def test_a_position_in_the_journal_of_another_tenant_leads_nowhere(engine: TestEngine, path: str) -> None:
    """The last id that a reader has seen is the reader's to write. [S33]"""
    a, theirs = await caller(engine), await row_of(engine, "b-waits")
    for position in (f"{theirs.journal}.-1", f"{theirs.journal}.0", f"{theirs.journal}.-1;words=0"):
        headers = {"last-event-id": position}
        answer = await a.get(f"{RUNS}/{path}", headers=headers, leave_when=lambda body: b"event:" in body)
        assert answer.status in (200, 422)
        assert MARK.encode() not in answer.body


async def test_why_a_run_waits_names_no_run_of_another_tenant(engine: TestEngine) -> None:
    """Tenants that share a queue do not learn which runs of other tenants hold its slots. [S33]"""
    await engine.queues.set("narrow", concurrency=1)
    for tenant, run_id in (("b", "b-holds"), ("a", "a-stands")):
        await engine.start(tagged_waits, MARK, id=run_id, queue="narrow", tags={"tenant": tenant})
        await engine.settle()
    said = (await (await caller(engine)).get(f"{RUNS}/a-stands/why")).data["why"]

    assert said == "it is in line in queue narrow, in place 1; the only slot is taken"


# -- The key itself -------------------------------------------------------------------------------------------------


async def test_both_bounds_count(engine: TestEngine) -> None:
    """A key for a workflow and a tag sees what is within both, and may use what keeps to both. [S3 S33]"""
    both = await caller(engine, workflows=["tagged_ends"])
    listed = await both.get(f"{RUNS}?workflow=tagged_ends")

    assert {"a-ended", "a-failed"} == {run["id"] for run in listed.data["items"]}
    assert [403, 403, 403] == [
        (await both.send(method, path, FILTER if method == "POST" else None)).status
        for method, path in (("GET", RUNS), ("GET", "/api/v1/batches"), ("POST", "/api/v1/bulk/cancel"))
    ]
    assert [200, 404, 404] == [
        (await both.get(f"{RUNS}/{run_id}")).status for run_id in ("a-ended", "a-waits", "b-ended")
    ]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"tags": {}}, "name at least one"),
        ({"tags": {"a=b": "c"}}, "without '='"),
        ({"tags": {"a": "b"}, "scope": "worker"}, "a worker takes tasks from queues"),
        ({"tags": {"": "b"}}, "tags"),
    ],
)
async def test_a_key_that_would_bind_nothing_is_not_made(engine: TestEngine, wrong: Any, says: str) -> None:
    """Or that could be read in two ways. [S3]"""
    with pytest.raises(InvalidArgumentError, match=says):
        await engine.keys.create("a", **wrong)
    assert await engine.keys.list() == []


async def test_a_key_with_a_bound_that_this_release_does_not_know_opens_nothing(engine: TestEngine) -> None:
    """An older server beside newer ones must not take it for a key without bounds. [S3 S43]"""
    made = await engine.keys.create("a", tags={"tenant": "a"})
    store, cell = store_of(engine), f"outlive.key/{made.key.id}"
    held = msgspec.json.decode(await store.read_cell(cell) or b"")
    assert held["tags"] == {"tenant": "a"}
    held["regions"] = ["eu"]
    await store.change_cell(cell, lambda *_: (msgspec.json.encode(held), None))

    assert await find_key(engine, made.secret) is None


async def test_a_caller_with_a_tag_changes_no_other_runs(engine: TestEngine) -> None:
    """A caller that is bound to a tag changes no run without it, and the runs that it starts have it. [S33]"""
    with engine.audit.acting("a", tags={"tenant": "a"}):
        for change in (engine.cancel("b-waits"), engine.signal("b-waits", "go"), engine.retry("b-failed")):
            with pytest.raises(RunNotFoundError):
                await change
        with pytest.raises(RunNotFoundError):
            await engine.fork("b-ended", id="forked")
        made = await engine.start(tagged_ends, "x")
        await engine.cancel("a-waits")
    await engine.settle()

    assert (await made.info()).tags == {"tenant": "a"}
    assert (await engine.get("a-waits").info()).status == "cancelled"
    assert (await engine.get("b-waits").info()).status == "waiting"
