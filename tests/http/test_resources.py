"""What else an engine has, over HTTP: approvals, recovery, queues, schedules, promises, events, flows, batches."""

from __future__ import annotations

from datetime import timedelta

import outlive
from outlive.http import Api
from outlive.testing import TestEngine
from tests.http import shop
from tests.http.caller import Caller

FLOW = """
name: api_flow
input: { order: any }
triggers:
  - webhook: /api-hook
    manual: false
steps:
  look: { use: noop }
output: "${{ input.order }}"
"""


async def test_the_inbox_lists_open_approvals_of_an_assignee(api: Caller, engine: TestEngine) -> None:
    """The inbox lists the open approvals of an assignee, and the run has the decision with who made it."""
    await engine.start(shop.api_refund, id="r-1")
    await engine.settle()
    inbox = await api.get("/api/v1/approvals?assignee=ann&workflow=api_refund")
    other = await api.get("/api/v1/approvals?assignee=bob")
    request = inbox.data["items"][0]
    await api.post("/api/v1/runs/r-1/approvals/refund/approve", {"by": "ann", "request": request["id"]})
    await engine.settle()
    asked = await api.get("/api/v1/runs/r-1/approvals")

    assert ("r-1", "pending", "Refund 5 EUR?", ["ann"]) == (
        request["run_id"],
        request["status"],
        request["title"],
        request["assignees"],
    )
    assert [] == other.data["items"]
    assert ("approved", "ann") == (asked.data["items"][0]["status"], asked.data["items"][0]["decision"]["by"])
    assert [] == (await api.get("/api/v1/approvals")).data["items"]


async def test_parked_runs_are_listed_and_go_on(api: Caller, engine: TestEngine) -> None:
    """One by one, or all of them, after a preview."""
    for name in ("p-1", "p-2", "p-3"):
        await engine.start(shop.api_patient, id=name)
    await engine.settle()
    for name in ("p-1", "p-2", "p-3"):
        await engine.pause(name)
    await engine.settle()

    first = await api.get("/api/v1/runs/stuck?limit=2")
    second = await api.get(f"/api/v1/runs/stuck?limit=2&before={first.data['next']}")
    one = await api.post("/api/v1/runs/p-1/resume")
    await engine.settle()
    preview = await api.post("/api/v1/bulk/resume", {"dry_run": True})
    everything = await api.post("/api/v1/bulk/resume")
    await engine.settle()

    assert ["p-3", "p-2", "p-1"] == [it["run"]["id"] for page in (first, second) for it in page.data["items"]]
    assert ("parked", None) == (first.data["items"][0]["kind"], second.data["next"])
    assert 202 == one.status
    assert [("p-2", False), ("p-3", False)] == [(it["id"], it["done"]) for it in preview.data["items"]]
    assert [True, True] == [it["done"] for it in everything.data["items"]]
    assert [] == (await api.get("/api/v1/runs/stuck")).data["items"]


async def test_queues_are_measured_changed_and_paused(api: Caller, engine: TestEngine) -> None:
    """A limit of null is none; what is left out stays."""
    await engine.start(shop.api_order, 5, id="q-1", queue="api_queue", delay=60)
    changed = await api.send("PUT", "/api/v1/queues/api_queue", {"concurrency": 3, "per_key": None})
    paused = await api.post("/api/v1/queues/api_queue/pause", {"reason": "mail is down"})
    listed = await api.get("/api/v1/queues")
    resumed = await api.post("/api/v1/queues/api_queue/resume")
    reset = await api.post("/api/v1/queues/api_queue/reset")

    assert (3, None, ["concurrency", "per_key"]) == (
        changed.data["limits"]["concurrency"],
        changed.data["limits"]["per_key"],
        changed.data["changed"],
    )
    found = next(it for it in listed.data["items"] if it["name"] == "api_queue")
    assert ("paused by local: mail is down", 1) == (found["paused"], found["later"]["count"])
    assert [200, 200, []] == [paused.status, resumed.status, reset.data["changed"]]
    assert 422 == (await api.send("PUT", "/api/v1/queues/api_queue", {})).status
    assert 400 == (await api.send("PUT", "/api/v1/queues/api_queue", {"concurrency": 0})).status


async def test_the_rate_and_the_weights_of_a_queue_are_set_as_they_are_read(api: Caller, engine: TestEngine) -> None:
    """The rate and weights of a queue that were read can be sent again; null clears them, and a value that cannot be is
    named."""
    path = "/api/v1/queues/api_paced"
    rate = [
        {"kind": "bucket", "amount": 0.5, "burst": 3, "span": None},
        {"kind": "window", "amount": 500.0, "burst": None, "span": "PT60S"},
    ]
    await api.send("PUT", path, {"rate": rate, "weights": {"acme": 3}})
    read = (await api.get(path)).data["limits"]
    again = await api.send("PUT", path, {name: read[name] for name in ("rate", "weights")})
    paces = (await engine.queues.stats("api_paced")).limits.rate
    none = await api.send("PUT", path, {"rate": None, "weights": None})

    assert (rate, {"acme": 3.0}) == (read["rate"], read["weights"]) == (again.data["limits"]["rate"], {"acme": 3.0})
    assert ["0.5 a second, 3 at once", "500 in 60 s"] == [tier.tier.label for tier in paces]
    assert [None, timedelta(minutes=1)] == [tier.span for tier in paces]
    assert ([], {}) == (none.data["limits"]["rate"], none.data["limits"]["weights"])
    assert ["rate", "weights"] == none.data["changed"]
    for wrong, named in (
        ({"kind": "bucket", "amount": 1, "span": 60}, "span"),
        ({"kind": "window", "amount": 0.5, "span": 60}, "amount"),
        ({"kind": "window", "amount": 5}, "span"),
        ({"kind": "window", "amount": 5, "burst": 5, "span": "5m"}, "burst"),
        ({"kind": "window", "amount": 1e300, "span": 60}, "limit"),
        ({"kind": "bucket", "amount": 1e300, "burst": 60}, "rate"),
    ):
        refused = await api.send("PUT", path, {"rate": [wrong]})
        assert (422, True) == (refused.status, named in refused.data["detail"])
    nothing = [{"kind": "bucket", "amount": 0, "burst": 1}]
    for malformed in ({"weights": {"acme": 0}}, {"rate": nothing}, {"per_key": 10**30}):
        assert 400 == (await api.send("PUT", path, malformed)).status
    twice = await api.send("PUT", path, {"rate": [rate[0], rate[0]]})
    assert (422, "each of them once" in twice.data["detail"]) == (twice.status, True)


async def test_a_bulk_verb_is_for_the_runs_that_its_filter_lists(api: Caller, engine: TestEngine) -> None:
    """A bulk verb is for exactly the runs that its filter lists, with child runs only if the list has them."""
    shop.Flag.is_up = False
    await engine.start(shop.api_parent, 5, id="b-1")
    await engine.settle()
    shop.Flag.is_up = True
    for roots_only in (False, True):
        shown = await api.get(f"/api/v1/runs?workflow=api_order&roots_only={str(roots_only).lower()}")
        body = {"workflow": "api_order", "dry_run": True, "roots_only": roots_only}
        meant = await api.post("/api/v1/bulk/retry", body)
        assert [it["id"] for it in shown.data["items"]] == [it["id"] for it in meant.data["items"]]
    done = await api.post("/api/v1/bulk/retry", {"workflow": "api_order", "roots_only": False})

    assert [True] == [it["done"] for it in done.data["items"]]
    assert "5 charged" in await engine.get("b-1").result()


async def test_schedules_are_set_triggered_and_deleted(api: Caller, engine: TestEngine) -> None:
    """By plain JSON, for a workflow by name."""
    path = "/api/v1/schedules/api_nightly"
    body = {"workflow": "api_order", "cron": ["0 6 * * *"], "tz": "Europe/Stockholm", "arguments": {"cents": 5}}
    made = await api.send("PUT", path, body)
    started = await api.post(f"{path}/trigger")
    paused = [await api.post(f"{path}/{verb}") for verb in ("pause", "resume")]
    now = engine.now()
    filled = await api.post(
        f"{path}/backfill", {"start": now.replace(day=1).isoformat(), "end": now.isoformat(), "overlap": "allow"}
    )
    listed = await api.get("/api/v1/schedules?limit=1")
    gone = [await api.send("DELETE", path) for _ in range(2)]

    assert (["0 6 * * *"], {"cents": 5}, False) == (
        made.data["schedule"]["cron"],
        made.data["schedule"]["arguments"],
        made.data["is_paused"],
    )
    assert ["it fires next at"] == [made.data["why"][:16]]
    assert "succeeded" == (await api.get(f"/api/v1/runs/{started.data['id']}/result?wait=9")).data["status"]
    assert [200, 200] == [it.status for it in paused]
    assert filled.data["ticks"] > 5
    assert ["api_nightly"] == [it["name"] for it in listed.data["items"]]
    assert [200, 404] == [it.status for it in gone]
    both = await api.send("PUT", path, body | {"every": 5})
    assert (422, "invalid_argument") == (both.status, both.code)
    unknown = await api.send("PUT", path, {"workflow": "api_nothing", "every": 60})
    assert (404, "unknown_workflow") == (unknown.status, unknown.code)


@outlive.workflow(queue=outlive.Queue("api-line", priorities=True))
async def api_in_line(cents: int) -> int:
    """Waits for its turn."""
    return cents


async def test_a_schedule_that_is_read_can_be_set_as_it_is(api: Caller, engine: TestEngine) -> None:
    """Nothing of its definition is left out: a client that changes one field keeps the others."""
    wanted = {
        "name": "",
        "cron": ["0 6 * * 1-5"],
        "every": None,
        "tz": "Europe/Stockholm",
        "arguments": {"cents": 7},
        "overlap": "buffer_one",
        "catch_up": 3,
        "start": "2030-01-01T00:00:00Z",
        "end": "2031-01-01T00:00:00Z",
        "exclude": ["2030-12-24"],
        "jitter": "PT5S",
        "trip_after": 4,
        "tags": {"tenant": "a"},
        "key": "customer-7",
        "priority": 2,
    }
    path = "/api/v1/schedules/api_whole"

    await (await engine.start(api_in_line, 1)).result()  # So the store knows the queue.
    made = await api.send("PUT", path, {"workflow": "api_in_line", **wanted})
    run = await api.post(f"{path}/trigger", {"id": "own-id"})

    assert 200 == made.status, made.body
    assert wanted | {"name": "api_whole"} == made.data["schedule"]
    assert made.data["schedule"] == (await api.send("PUT", path, made.data["schedule"])).data["schedule"]
    assert (201, {"id": "own-id"}) == (run.status, run.data)


async def test_runs_are_paused_by_a_filter_and_the_store_as_a_whole(api: Caller, engine: TestEngine) -> None:
    """A filter pauses the runs that fit it. A pause of the store keeps every run, and is ended on its own."""
    for name in ("h-1", "h-2", "i-1"):
        await engine.start(shop.api_patient, id=name)
    await engine.settle()

    unfiltered = await api.post("/api/v1/bulk/pause", {})
    paused = await api.post("/api/v1/bulk/pause", {"id_prefix": "h-", "reason": "rain"})
    await engine.settle()
    stopped = await api.post("/api/v1/store/pause", {"reason": "a move"})
    await engine.start(shop.api_order, 5, id="h-3")
    await engine.settle()
    why = (await api.get("/api/v1/runs/h-3/why")).data["why"]
    resumed = await api.post("/api/v1/store/resume")

    assert (422, "invalid_argument") == (unfiltered.status, unfiltered.code)
    assert [("h-1", True), ("h-2", True)] == [(it["id"], it["done"]) for it in paused.data["items"]]
    assert "rain" in (await api.get("/api/v1/runs/h-1/why")).data["why"]
    assert "waiting" == (await api.get("/api/v1/runs/i-1")).data["status"]
    assert [{"id": "store"}] * 2 == [stopped.data, resumed.data]
    assert "a move" in why
    assert await engine.get("h-3").result()


async def test_workers_and_metrics_are_shown(api: Caller, engine: TestEngine) -> None:
    """Without a key nothing of them is."""
    workers = await api.get("/api/v1/workers")
    metrics = await api.get("/metrics")

    assert ["live"] == [it["status"] for it in workers.data["items"]]
    assert "api_order@1" in workers.data["items"][0]["definitions"]
    assert b"# TYPE outlive_" in metrics.body
    assert metrics.headers["content-type"].startswith("text/plain")
    assert 401 == (await Caller(Api(engine), address="192.0.2.1").get("/metrics")).status


async def test_promises_are_settled_once(api: Caller, engine: TestEngine) -> None:
    """With a value, or with an error."""
    good = await engine.start(shop.api_promising, id="pr-1")
    bad = await engine.start(shop.api_promising, id="pr-2")
    await engine.settle()
    ids = [(await it.published())["promise"] for it in (good, bad)]
    first, again = [await api.post(f"/api/v1/promises/{ids[0]}/resolve", {"value": 7}) for _ in range(2)]
    failed = await api.post(f"/api/v1/promises/{ids[1]}/fail", {"message": "no", "type": "Late"})
    unknown = await api.post("/api/v1/promises/nothing/resolve")

    assert [True, False] == [first.data["is_new"], again.data["is_new"]]
    assert 7 == await good.result()
    assert (200, "failed") == (failed.status, (await api.get("/api/v1/runs/pr-2/result?wait=9")).data["status"])
    assert "Late: no" in repr((await api.get("/api/v1/runs/pr-2")).data["error"])
    assert (404, "promise_not_found") == (unknown.status, unknown.code)


async def test_events_start_runs_once(api: Caller, engine: TestEngine) -> None:
    """An event with the same key gets the same answer; sinks are set, listed and deleted by name."""
    sent = [
        await api.post("/api/v1/events", {"type": "api.happened"}, headers={"idempotency-key": "e"}) for _ in range(2)
    ]
    sink = await api.send("PUT", "/api/v1/sinks/crm", {"url": "https://crm.example/hook", "types": ["order.*"]})
    sinks = await api.get("/api/v1/sinks")
    gone = await api.send("DELETE", "/api/v1/sinks/crm")
    triggers = await api.get("/api/v1/triggers")

    assert (202, sent[0].body) == (sent[1].status, sent[1].body)
    assert [200, 200, 200] == [sink.status, gone.status, (await api.send("DELETE", "/api/v1/triggers/nothing")).status]
    assert [{"name": "crm", "url": "https://crm.example/hook", "types": ["order.*"], "secret": None}] == sinks.data[
        "items"
    ]
    assert [] == [it for it in triggers.data["items"] if it["workflow"] == "api_order"]
    bad = await api.send("PUT", "/api/v1/sinks/crm", {"url": "ftp://x"})
    assert 422 == bad.status


async def test_flows_are_published_from_drafts_and_started(api: Caller, engine: TestEngine) -> None:
    """A stale write is refused; a webhook of a flow is below /webhooks."""
    draft = await api.post("/api/v1/flows/drafts", {"document": FLOW, "reason": "first"})
    published = await api.post("/api/v1/flows/api_flow/publish")
    stale = await api.post("/api/v1/flows", {"document": FLOW.replace("look", "see"), "expected": 7})
    second = await api.post("/api/v1/flows", {"document": FLOW.replace("look", "see"), "expected": 1})
    back = await api.post("/api/v1/flows/api_flow/rollback")
    history = await api.get("/api/v1/flows/api_flow/history")
    document = await api.get("/api/v1/flows/api_flow/document?revision=2")
    await engine.settle()
    run = await api.post("/api/v1/flows/api_flow/runs", {"input": {"order": 7}}, headers={"idempotency-key": "k"})
    hooked = await api.post("/webhooks/api-hook", {"order": 8})
    broken = await api.post("/api/v1/flows", {"document": "name: x\nsteps: 7"})
    off = await api.post("/api/v1/flows/api_flow/disable", {"reason": "no"})
    refused = await api.post("/api/v1/flows/api_flow/runs", {"input": {"order": 7}})

    assert (None, 1, "local") == (draft.data["current"], draft.data["draft"]["number"], draft.data["draft"]["by"])
    assert (1, None) == (published.data["current"]["number"], published.data["draft"])
    assert (409, "stale_flow") == (stale.status, stale.code)
    assert [2, 3] == [it.data["current"]["number"] for it in (second, back)]
    assert [3, 2, 1] == [it["number"] for it in history.data["items"]]
    assert "see:" in document.data["text"]
    assert 7 == (await api.get(f"/api/v1/runs/{run.data['id']}/result?wait=9")).data["result"]
    assert 202 == hooked.status
    assert (422, "flow") == (broken.status, broken.code)
    assert (False, "disabled by local: no") == (off.data["is_enabled"], off.data["why_disabled"])
    assert (409, "flow_disabled") == (refused.status, refused.code)
    assert ["api_flow"] == [it["name"] for it in (await api.get("/api/v1/flows")).data["items"]]
    gone = await api.send("DELETE", "/api/v1/flows/api_flow?force=true")
    assert [200, 404] == [gone.status, (await api.get("/api/v1/flows/api_flow")).status]


async def test_a_flow_may_have_the_name_of_what_is_done_to_documents(api: Caller) -> None:
    """`POST /flows/check` checks a document; `GET /flows/check` is the flow of that name."""
    document = FLOW.replace("name: api_flow", "name: check")
    published = await api.post("/api/v1/flows", {"document": document})
    checked = await api.post("/api/v1/flows/check", {"document": document})
    refused = await api.send("PUT", "/api/v1/flows/check")

    assert [200, 200] == [published.status, checked.status]
    assert "check" == (await api.get("/api/v1/flows/check")).data["name"]
    assert 200 == (await api.send("DELETE", "/api/v1/flows/check")).status
    assert 405 == refused.status


async def test_batches_are_started_by_name_and_their_items_paged(api: Caller, engine: TestEngine) -> None:
    """A batch starts once for each key, its items come in pages, and its failed rows can be tried again as another
    batch."""
    body = {"workflow": "api_fussy", "rows": [0, 1, 2, 3, 4]}
    first, again = [await api.post("/api/v1/batches", body, headers={"idempotency-key": "b"}) for _ in range(2)]
    batch = f"/api/v1/batches/{first.data['id']}"
    await engine.batches.get(first.data["id"]).result()
    whole = await api.get(batch)
    pages = [await api.get(f"{batch}/items?limit=3")]
    pages.append(await api.get(f"{batch}/items?limit=3&after={pages[0].data['next']}"))
    failed = await api.get(f"{batch}/items?status=failed")
    retried = [await api.post(f"{batch}/retry", {"id": "again"}) for _ in range(2)]
    unfit = await api.post("/api/v1/batches", body | {"rows": [1, "x"]})
    no_batch = await api.get("/api/v1/batches/nothing")

    assert (201, first.body) == (again.status, again.body)
    assert ("api_fussy", 5, 3, 2) == tuple(whole.data[name] for name in ("work", "total", "succeeded", "failed"))
    assert [0, 1, 2, 3, 4] == [it["index"] for page in pages for it in page.data["items"]]
    assert [1, 3] == [it["index"] for it in failed.data["items"]]
    assert "odd: 1" in failed.data["items"][0]["error"]["message"]
    assert [201, 201, "again"] == [retried[0].status, retried[1].status, retried[1].data["id"]]
    assert (422, 404) == (unfit.status, no_batch.status)


async def test_large_payloads_are_given_on_demand(api: Caller, engine: TestEngine) -> None:
    """A history says how large one is; by itself it is given whole."""
    await engine.start(shop.api_order, 5, "x" * 100_000, id="large")
    await engine.get("large").result()
    history = await api.get("/api/v1/runs/large/history")
    whole = await api.get("/api/v1/runs/large/history/0/input")

    assert history.data["items"][0]["data"]["input"]["[large]"] > 100_000
    assert len(history.body) < 5_000
    assert "x" * 100_000 == whole.data[1]
    for path in ("0/nothing", "0/workflow", "99/input", "x/input"):
        assert 404 == (await api.get(f"/api/v1/runs/large/history/{path}")).status
