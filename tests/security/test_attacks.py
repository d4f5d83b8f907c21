"""Ways past the doors of the HTTP API that an attacker with a little access, or none, could try."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from outlive import flow
from outlive._features.events.delivering import deliver
from outlive._kernel.model import RunStatus
from outlive._kernel.model.trigger import SentEvent
from outlive.engine.view import view_of
from outlive.errors import ConfigurationError, RunNotFoundError, StoreUnavailableError
from outlive.errors.outside import DeliveryRefusedError, UnreachableError
from outlive.errors.run import QuotaExceededError
from outlive.http import Api, ApiLimits, Asking, Webhooks, first_of, loopback
from outlive.http.doors import StoredKeys
from outlive.http.nesting import DEPTH_MAX, is_deeper
from outlive.http.operation import OPERATIONS
from outlive.http.problem import problem_of
from outlive.testing import TestEngine
from tests.engine.inside import row_of, store_of
from tests.http import shop
from tests.http.caller import Caller, Message

FAR, PROXY = "192.0.2.7", "10.0.0.5"


@pytest.fixture
async def engine() -> AsyncIterator[TestEngine]:
    """An engine."""
    async with TestEngine() as engine:
        yield engine


async def caller(engine: TestEngine, scope: str = "operator", **options: object) -> Caller:
    """A caller with a key."""
    key = await engine.keys.create("eve", scope=scope, **options)  # type: ignore[arg-type]
    return Caller(Api(engine, auth="keys"), key=key.secret, address=FAR)


# -- Past the workflows of a key ------------------------------------------------------------------------------------


@pytest.mark.parametrize("on_conflict", ["attach", "attach_open", "replace"])
@pytest.mark.parametrize("is_over", [False, True])
async def test_a_start_takes_no_id_from_a_run_of_another_workflow(
    engine: TestEngine, on_conflict: str, *, is_over: bool
) -> None:
    """Who may start one workflow could else end, or rename, the runs of all others. [S3 S33]"""
    await engine.start(shop.api_patient, id="theirs")
    await engine.settle()
    if is_over:
        await engine.signal("theirs", "go", 1)
        await engine.settle()
    before = (await engine.get("theirs").info()).status
    eve = await caller(engine, workflows=["api_order"])
    order = {"workflow": "api_order", "arguments": [5], "id": "theirs", "on_conflict": on_conflict}
    answer = await eve.post("/api/v1/runs", order)

    assert (answer.status, answer.code) == (409, "run_exists")
    after = await engine.get("theirs").info()
    assert (after.status, after.workflow) == (before, "api_patient")
    assert b"api_patient" not in answer.body


@pytest.mark.parametrize("is_batch", [False, True])
async def test_an_id_that_is_taken_tells_nothing_of_the_run_that_has_it(engine: TestEngine, *, is_batch: bool) -> None:
    """Neither its workflow nor how it is, whichever verb finds it: a batch and a fork take ids too. [S3 S12 S33]"""
    if is_batch:
        await engine.start_batch(shop.api_fussy, [1, 2], id="theirs")
    else:
        await engine.start(shop.api_patient, id="theirs")
    await engine.start(shop.api_order, 5, id="mine")
    await engine.settle()
    eve = await caller(engine, workflows=["api_order"])
    answers = [
        await eve.post("/api/v1/batches", {"workflow": "api_order", "rows": [5], "id": "theirs"}),
        await eve.post("/api/v1/runs/mine/fork", {"id": "theirs"}),
        await eve.post("/api/v1/runs", {"workflow": "api_order", "arguments": [5], "id": "theirs"}),
    ]

    assert [(409, "run_exists")] * 3 == [(answer.status, answer.code) for answer in answers]
    said = b"".join(answer.body for answer in answers)
    assert not [word for word in (b"patient", b"fussy", b"waiting", b"succeeded", b"failed", b"batch") if word in said]


async def test_a_key_of_a_child_does_not_open_the_tree(engine: TestEngine) -> None:
    """The runs of a tree have one journal: the workflow of the root says who may see it. [S3 S12 S33]"""
    await engine.start(shop.api_parent, 7, id="parent")
    await engine.settle()
    (child,) = [run.id for run in await engine.list(workflow="api_order")]
    eve, owner = await caller(engine, workflows=["api_order"]), await caller(engine, workflows=["api_parent"])

    for path in ("", "/history", "/tree", "/result", "/follow", "/why", "/approvals", "/history/0/input"):
        hidden = await eve.get(f"/api/v1/runs/{child}{path}".replace("~", "%7E"))
        assert (hidden.status, hidden.code) == (404, "run_not_found"), path
    assert (await eve.post(f"/api/v1/runs/{child}/cancel")).status == 404
    assert (await owner.get(f"/api/v1/runs/{child}")).status == 200
    listed = await eve.get("/api/v1/runs?workflow=api_order")
    counted = await eve.get("/api/v1/runs/count?workflow=api_order")
    assert ([], 0) == (listed.data["items"], counted.data["count"])


@pytest.mark.parametrize("verb", ["signals", "asks"])
async def test_a_message_does_not_reach_a_run_of_another_workflow_that_takes_its_id_meanwhile(
    engine: TestEngine, verb: str
) -> None:
    """The id was free when the sender was checked, and the store looks again when it writes. [S3 S33]"""
    key = await engine.keys.create("eve", scope="operator", workflows=["api_order"])
    api = Api(engine, auth="keys")

    async def late(scope: Any, receive: Any, send: Any) -> None:
        async def receive_late() -> Any:
            await engine.start(shop.api_patient, id="theirs", on_conflict="attach")
            return await receive()

        await api(scope, receive_late, send)

    order = {"start": {"workflow": "api_order", "arguments": [5]}}
    answer = await Caller(late, key=key.secret, address=FAR).post(f"/api/v1/runs/theirs/{verb}/go", order)

    assert (answer.status, answer.code) == (404, "run_not_found")
    assert b"api_patient" not in answer.body
    await engine.settle()
    theirs = await row_of(engine, "theirs")
    assert (theirs.workflow, theirs.status) == ("api_patient", RunStatus.WAITING)
    assert await store_of(engine).read_inbox([theirs.journal]) == {}


@pytest.mark.parametrize("path", ["follow", "follow?stream=words", "streams/words"])
async def test_a_run_of_another_workflow_that_takes_the_id_is_not_followed(engine: TestEngine, path: str) -> None:
    """Its own run was replaced; nothing that the next one does is shown. [S3 S12 S33]"""
    await engine.start(shop.api_patient, id="run-0")
    await engine.settle()
    key = await engine.keys.create("eve", workflows=["api_patient"])
    eve = Caller(Api(engine, auth="keys", limits=ApiLimits(look_seconds=0.0)), key=key.secret, address=FAR)
    going: list[asyncio.Future[object]] = []

    async def replace() -> None:
        await engine.start(shop.api_talker, "hunter22", id="run-0", on_conflict="replace")
        await engine.signal("run-0", "go", 1)
        await engine.settle()

    def look(seen: bytes) -> bool:
        if not going:
            going.append(asyncio.ensure_future(replace()))
        return False

    answer = await asyncio.wait_for(eve.send("GET", f"/api/v1/runs/run-0/{path}", leave_when=look), 20)
    await going[0]

    assert answer.status == 200
    assert not [word for word in (b"api_talker", b"hunter22", b"talking", b"words") if word in answer.body]
    assert (await engine.get("run-0").info()).workflow == "api_talker"


async def test_a_run_that_takes_the_id_after_the_check_is_not_shown(
    engine: TestEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run of another workflow that takes the id between the check and the read is not shown. [S3 S12 S33]"""
    await engine.start(shop.api_patient, id="run-0")
    await engine.settle()
    eve = await caller(engine, workflows=["api_patient"])

    async def late(call: Any, **arguments: Any) -> Any:
        await engine.start(shop.api_talker, "hunter22", id="run-0", on_conflict="replace")
        await engine.settle()
        return await get_run(call, **arguments)

    get_run = OPERATIONS["runs.info"].function
    monkeypatch.setitem(OPERATIONS["runs.info"].__dict__, "function", late)
    answer = await eve.get("/api/v1/runs/run-0")

    assert (answer.status, answer.code) == (404, "run_not_found")
    assert b"api_talker" not in answer.body


async def test_a_caller_of_some_workflows_changes_no_run_of_another(engine: TestEngine) -> None:
    """A caller that is bound to some workflows changes no run of another one, whichever verb it uses. [S3 S33]"""
    await engine.start(shop.api_patient, id="open")
    await engine.start(shop.api_patient, id="over")
    await engine.start(shop.api_refund, id="asks")
    await engine.settle()
    await engine.cancel("over")
    await engine.settle()
    over = await view_of(engine).row("over")
    verbs: list[Callable[[], Awaitable[object]]] = [
        lambda: engine.cancel("open"),
        lambda: engine.get("open").pause(by="eve"),
        lambda: engine.retry("over"),
        lambda: engine.fork("over", id="forked"),
        lambda: view_of(engine).delete(over),
        lambda: engine.approvals.approve("asks", "refund", by="eve"),
        lambda: engine.approvals.links.create("asks", "refund", approved=True, by="eve"),
        lambda: engine.start(shop.api_order, 5, id="open", on_conflict="replace"),
    ]

    with engine.audit.acting("eve", workflows=["api_order"]):
        for verb in verbs:
            with pytest.raises(RunNotFoundError):
                await verb()
    await engine.settle()

    found = {run.id: run.status for run in await engine.list()}
    assert found == {"open": "waiting", "over": "cancelled", "asks": "waiting"}


async def test_why_a_run_waits_tells_nothing_of_runs_of_another_workflow(engine: TestEngine) -> None:
    """A key that is bound to a workflow does not learn which runs of another workflow hold the slots of its queue. A
    key that may see all runs gets their ids. [S3 S33]"""
    await engine.queues.set("narrow", concurrency=2)
    for workflow, run_id in ((shop.api_patient, "theirs"), (shop.api_polite, "mine"), (shop.api_polite, "waits")):
        await engine.start(workflow, id=run_id, queue="narrow")
    await engine.settle()
    eve, root = await caller(engine, workflows=["api_polite"]), await caller(engine)
    paths = ("/api/v1/runs/waits/why", "/api/v1/runs/waits/result")
    said = [(await eve.get(path)).data["why"] for path in paths]
    said.append((await eve.post("/api/v1/runs/waits/asks/add", {"body": 1, "key": "k", "wait": 0})).data["why"])
    said.append((await eve.get("/api/v1/runs/waits/asks/add/k")).data["why"])

    line = "it is in line in queue narrow, in place 1; all 2 slots are taken: "
    assert said == [f"{line}mine, 1 more"] * 4
    assert (await root.get(paths[0])).data["why"] == f"{line}theirs, mine"


async def test_a_key_of_some_workflows_sees_no_figures_of_others(engine: TestEngine) -> None:
    """Metrics have the names of all workflows and steps. [S36]"""
    eve = await caller(engine, "viewer", workflows=["api_order"])

    assert [403, 403, 403] == [
        (await eve.get(path)).status for path in ("/metrics", "/api/v1/workers", "/api/v1/queues")
    ]


# -- Past the name of a key -----------------------------------------------------------------------------------------


async def test_an_operator_makes_no_link_to_decide_as_another_person(engine: TestEngine) -> None:
    """The decision would have that person's name, and no body may say who decides. [S38]"""
    await engine.start(shop.api_refund, id="run-0")
    await engine.settle()
    eve, root = await caller(engine), await caller(engine, "admin")
    path = "/api/v1/runs/run-0/approvals/refund/links"

    refused = await eve.post(path, {"approved": True, "by": "the boss"})
    assert (refused.status, refused.code) == (403, "forbidden")
    assert (await eve.post(path, {"approved": True, "by": "eve"})).status == 201
    assert (await root.post(path, {"approved": True, "by": "the boss"})).status == 201


async def test_a_key_that_is_revoked_follows_nothing_any_longer(engine: TestEngine) -> None:
    """A request that was let in once may go on for days. [S3]"""
    key = await engine.keys.create("eve")
    app = Api(engine, auth="keys", limits=ApiLimits(check_again_seconds=0.0, look_seconds=0.0))
    eve = Caller(app, key=key.secret)
    await engine.start(shop.api_patient, id="run-0")
    await engine.settle()

    async def revoke_and_go_on() -> None:
        await engine.keys.revoke(key.key.id)
        await engine.signal("run-0", "go", "a secret")

    going: list[asyncio.Task[None]] = []

    def look(seen: list[Message]) -> bool:
        if seen and not going:
            going.append(asyncio.ensure_future(revoke_and_go_on()))
        return False

    seen = await asyncio.wait_for(eve.follow("/api/v1/runs/run-0/follow", until=look), 20)
    await going[0]

    assert seen
    assert "end" not in [message.name for message in seen]
    assert "a secret" not in str([message.data for message in seen])


async def test_a_viewer_does_not_take_the_places_of_all_who_follow_events(engine: TestEngine) -> None:
    """Half of them are left to others, and what is given back can be taken again. [S35]"""
    app = Api(engine, auth="keys", limits=ApiLimits(look_seconds=0.0, followers_max=4))
    keys = [await engine.keys.create(name) for name in ("eve", "ann")]
    eve, ann = (Caller(app, key=key.secret, address=FAR) for key in keys)
    await engine.start(shop.api_patient, id="run-0")
    await engine.settle()
    path = "/api/v1/runs/run-0/follow"

    async def has_begun(who: Caller) -> asyncio.Task[Any]:
        begun = asyncio.Event()

        def look(seen: list[Message]) -> bool:
            begun.set()
            return False

        task = asyncio.ensure_future(who.follow(path, until=look))
        await asyncio.wait_for(begun.wait(), 20)
        return task

    following = [await has_begun(eve), await has_begun(eve)]
    refused = await asyncio.wait_for(eve.get(path), 20)
    following.append(await has_begun(ann))
    await engine.signal("run-0", "go", 1)
    ended = await asyncio.gather(*following)

    assert (refused.status, refused.code) == (503, "too_many_followers")
    assert [messages[-1].name for messages in ended] == ["end"] * 3
    assert (await eve.get(path)).status == 200


async def test_wrong_keys_do_not_shut_out_other_callers_of_a_proxy(engine: TestEngine) -> None:
    """All callers of a proxy have its address. [S5]"""
    key = await engine.keys.create("ann")
    app = Api(engine, auth="keys")
    ann = Caller(app, key=key.secret, address=PROXY)
    assert (await ann.get("/api/v1/runs")).status == 200
    eve = [await Caller(app, key=f"wrong {n}", address=PROXY).get("/api/v1/runs") for n in range(25)]

    assert [answer.status for answer in eve] == [401] * 20 + [429] * 5
    assert (await ann.get("/api/v1/runs")).status == 200
    await engine.keys.revoke(key.key.id)
    assert [401, 429] == [(await ann.get("/api/v1/runs")).status for _ in range(2)]


# -- Past the checks of the place -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "origin", ["http://[", "http://[::1", "null", "", "//", "http://localhost@evil.example", "\x00"]
)
async def test_an_origin_that_cannot_be_read_is_another_site(engine: TestEngine, origin: str) -> None:
    """An origin that cannot be read is refused as another site, and the server does not fail. [S2 S15]"""
    answer = await Caller(Api(engine)).post("/api/v1/runs", {"workflow": "x"}, headers={"origin": origin})

    assert (answer.status, answer.code) == (403, "origin_refused")


async def test_any_host_needs_keys() -> None:
    """Else any page could use a name that was rebound to this machine. [S1 S2]"""
    with pytest.raises(ConfigurationError, match="rebound"):
        Api(TestEngine(), hosts=["*"])
    Api(TestEngine(), hosts=["*"], auth="keys")


@pytest.mark.parametrize(
    "header", ["X-Forwarded-Proto", "x-forwarded-server", "x-forwarded-user", "cf-connecting-ip", "Forwarded", "via"]
)
async def test_a_request_that_a_proxy_forwards_is_not_of_this_machine(engine: TestEngine, header: str) -> None:
    """A request with a header that a proxy adds does not count as one of this machine. [S7]"""
    assert (await Caller(Api(engine)).get("/api/v1/runs", headers={header.lower(): "x"})).status == 401
    assert not Asking({header.lower(): "x"}, "::1").is_local


async def test_a_link_is_not_kept_in_the_audit_log(engine: TestEngine) -> None:
    """A request that is refused is written down with its path, and the path of a link opens a door. [S37 S30]"""
    await engine.start(shop.api_refund, id="run-0")
    await engine.settle()
    made = await engine.approvals.links.create("run-0", "refund", approved=True, by="ann")
    await Caller(Api(engine, auth="keys")).get(made.path, headers={"host": "evil.example"})
    (entry,) = await engine.audit.list()

    assert entry.is_denied
    assert made.token.split("_")[1] in entry.target
    assert made.token.split("_", 2)[2] not in str(entry)


# -- Past the limits ------------------------------------------------------------------------------------------------

BOMBS = {
    "a string that never ends": b"[" * 101 + b'"' + b'\\"' * 500_000,
    "a string that ends with half a mark": b"[" * 101 + b'"' + b'\\"' * 500_000 + b"\\",
    "a string with line ends in its marks": b"[" * 101 + b'"\\\n' * 300_000,
}


@pytest.mark.parametrize("bomb", BOMBS)
async def test_a_body_is_read_in_time_that_grows_with_its_length(engine: TestEngine, bomb: str) -> None:
    """A body that would take minutes if the time grew with the square of its length is refused at once. [S27 S35]"""
    answer = await Caller(Api(engine)).post("/api/v1/runs", body=[BOMBS[bomb]])

    assert (answer.status, answer.code) == (400, "malformed")


def test_the_depth_of_json_is_found_without_parsing_it() -> None:
    """Brackets in strings do not count. [S18]"""
    assert not is_deeper(b"[" * DEPTH_MAX + b"]" * DEPTH_MAX, DEPTH_MAX)
    assert is_deeper(b"[" * (DEPTH_MAX + 1), DEPTH_MAX)
    assert is_deeper(b'{"a":' * (DEPTH_MAX + 1), DEPTH_MAX)
    assert not is_deeper(b"[[],[]" + b",[]" * 500 + b"]", 2)
    assert not is_deeper(b'["' + b"[{" * 500 + b'\\""]', 2)
    assert not is_deeper(b'["a"' + b',"\\\\","["' * 500 + b"]", 2)


HOOK = """
name: attacked
input: { order: any }
triggers:
  - webhook: /attacked
steps:
  look: { use: noop }
"""


async def test_webhooks_have_the_limits_and_headers_of_the_api(engine: TestEngine) -> None:
    """Slow, deep and large bodies are refused there too, and no answer can be framed. [S10 S13 S35]"""
    flow.parse(HOOK)
    api = Caller(Api(engine, limits=ApiLimits(body_bytes_max=2_000)))
    deep = await api.post("/webhooks/attacked", body=[b'{"order":' + b"[" * 101 + b"]" * 101 + b"}"])
    large = await api.post("/webhooks/attacked", body=[b'"' + b"x" * 2_000 + b'"'])
    unknown = await api.post("/webhooks/nothing", {})
    taken = await api.post("/webhooks/attacked", {"order": 1})

    assert [400, 413, 404, 202] == [answer.status for answer in (deep, large, unknown, taken)]
    for answer in (deep, large, unknown, taken):
        assert answer.headers["x-frame-options"] == "DENY"
        assert "default-src 'none'" in answer.headers["content-security-policy"]


async def test_a_body_of_a_webhook_that_does_not_arrive_is_not_waited_for(engine: TestEngine) -> None:
    """A body of a webhook that does not arrive within the time for bodies of the API gets 408. [S35]"""
    flow.parse(HOOK)
    said: list[dict[str, object]] = []

    async def receive() -> dict[str, object]:
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: dict[str, object]) -> None:
        said.append(message)

    headers = [(b"content-type", b"application/json"), (b"content-length", b"9")]
    scope = {"type": "http", "method": "POST", "path": "/attacked", "headers": headers}
    await Webhooks(engine, limits=ApiLimits(body_seconds=0.0))(scope, receive, send)  # type: ignore[arg-type]

    assert said[0]["status"] == 408


def test_a_used_up_quota_gets_429() -> None:
    """A start beyond the quota gets 429 and the time to come again. [S34]"""
    problem = problem_of(QuotaExceededError("acme", "open runs"))

    assert (problem.status, problem.code, problem.headers) == (429, "quota_exceeded", {"retry-after": "5"})


async def test_a_key_goes_before_the_machine_that_it_comes_from(engine: TestEngine) -> None:
    """A wrong one is not forgiven because it comes from here. [S3]"""
    both = Api(engine, auth=first_of(loopback, StoredKeys(engine)))

    assert [200, 401] == [(await Caller(both, key=key).get("/api/v1/runs")).status for key in ("", "wrong")]


async def test_the_health_of_a_store_does_not_say_where_it_is(
    engine: TestEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An address or a path is for the log. [S44]"""

    async def fail(run_id: str) -> None:
        raise StoreUnavailableError("/var/lib/secret/runs.db", "away")

    monkeypatch.setattr(store_of(engine), "find_run", fail)
    answer = await (await caller(engine, "viewer")).get("/api/v1/health")

    assert answer.status == 200
    assert b"secret" not in answer.body
    assert answer.data["store"].startswith("unhealthy")


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:{}/",
        "http://localhost:{}/",
        "http://[::ffff:127.0.0.1]:{}/",
        "http://169.254.169.254/latest/meta-data/",
    ],
)
async def test_a_sink_of_this_machine_gets_nothing(engine: TestEngine, url: str) -> None:
    """An administrator of the API is none of the machine: what flows may reach, the operator allows. [S25]"""
    reached: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reached.append("it was")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        place = url.format(server.sockets[0].getsockname()[1])
        answer = await (await caller(engine, "admin")).send("PUT", "/api/v1/sinks/inside", {"url": place})
        if answer.status == 200:
            event = SentEvent(type="a", id="1", source="", data=None, time="2026-01-01T00:00:00Z")
            with pytest.raises((DeliveryRefusedError, UnreachableError)):
                await deliver(store_of(engine), "inside", event)
    assert reached == []


# -- Past what flows may reach ----------------------------------------------------------------------------------------

NOSY = """
name: nosy
vars:
  plain: { type: string, env: OUTLIVE_STORE }
  secret: { type: string, secret: true, env: SHOP_TOKEN }
steps:
  look: { use: noop }
output: "${{ vars.plain }}"
"""


async def test_a_document_that_comes_with_a_key_names_no_environment_variable(engine: TestEngine) -> None:
    """One has the password of the store, and so all tenants; what the operator lists may be named. [S30 S33]"""
    eve = await caller(engine, "admin")
    document = {"document": NOSY}

    async def refused() -> list[str]:
        answers = [await eve.post(f"/api/v1/{path}", document) for path in ("flows", "flows/drafts")]
        assert {(422, "flow")} == {(answer.status, answer.code) for answer in answers}
        checked = (await eve.post("/api/v1/flows/check", document)).data
        assert not checked["is_fine"]
        return [f"{it['path']} {it['line']}" for it in checked["problems"] if it["code"] == "unlisted-env"]

    assert await refused() == ["vars.plain.env 4", "vars.secret.env 5"]
    with flow.using({"environment": ["SHOP_*"]}):
        assert await refused() == ["vars.plain.env 4"]
    assert await engine.flows.list() == []
    grants = {"secret": {"flows": ["nosy"]}}
    with flow.using({"environment": ["SHOP_*", "OUTLIVE_STORE"], "grants": grants}):
        assert (await eve.post("/api/v1/flows", document)).status == 200
    own = await Caller(Api(engine)).post("/api/v1/flows", {"document": NOSY.replace("nosy", "of.this.machine")})
    assert own.status == 200, own.body
