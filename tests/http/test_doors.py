"""Who may use the API: keys of the store, a proxy that is trusted; and what the audit log has of it."""

from __future__ import annotations

import pytest

from outlive.errors import ConfigurationError, StoreUnavailableError
from outlive.http import Api, StoredKeys, TrustedHeader, first_of
from outlive.http.denials import OWN_ROWS
from outlive.testing import TestEngine
from tests.engine.inside import store_of
from tests.http import shop
from tests.http.caller import Caller

PROXY, FAR = "10.0.0.5", "192.0.2.7"


async def made(engine: TestEngine, name: str, scope: str = "operator", **options: object) -> Caller:
    """A caller with a key of its own."""
    key = await engine.keys.create(name, scope=scope, **options)  # type: ignore[arg-type]
    return Caller(Api(engine, auth="keys"), key=key.secret, address=FAR)


async def said(engine: TestEngine) -> list[str]:
    """What the audit log says, the oldest first."""
    entries = (await engine.audit.list(limit=1_000))[::-1]
    mark = {True: "denied ", False: ""}
    return [f"{mark[it.is_denied]}{it.actor} {it.verb} {it.target}" for it in entries]


async def test_a_stored_key_opens_the_door_until_it_is_revoked(engine: TestEngine) -> None:
    """At once, on all servers; programs of this machine need one too then. [S3 S4]"""
    key = await engine.keys.create("ci", scope="viewer")
    servers = [Api(engine, auth="keys") for _ in range(2)]

    async def statuses(secret: str) -> list[int]:
        return [(await Caller(app, key=secret).get("/api/v1/runs")).status for app in servers]

    assert await statuses(key.secret) == [200, 200]
    assert await statuses("") == [401, 401]
    await engine.keys.revoke(key.key.id)
    assert await statuses(key.secret) == [401, 401]


async def test_a_caller_learns_that_its_key_is_not_valid(engine: TestEngine) -> None:
    """That it has to send a key does not help one that did."""
    key = await engine.keys.create("ci", scope="viewer")
    await engine.keys.revoke(key.key.id)
    app = Api(engine, auth="keys")

    without = await Caller(app).get("/api/v1/runs")
    details = {(await Caller(app, key=it).get("/api/v1/runs")).data["detail"] for it in (key.secret, "olv_wrong")}

    assert "does not know who asks" in without.data["detail"]
    (detail,) = details
    assert "unknown, revoked or has expired" in detail


@pytest.mark.parametrize("garbage", ["nothing", "", "x" * 10_000, "olv_\u00e9", "null", "olv_a_b, olv_c_d"])
async def test_garbage_is_not_a_key(engine: TestEngine, garbage: str) -> None:
    """A header with garbage in place of a key gets 401. [S3]"""
    caller = Caller(Api(engine, auth="keys"))

    for kind in ("Bearer", "Basic", ""):
        headers = {"authorization": f"{kind} {garbage}"}
        assert (await caller.get("/api/v1/runs", headers=headers)).status == 401


async def test_a_store_that_is_away_lets_no_request_in(engine: TestEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request whose key cannot be checked because the store is away gets 503. [S43]"""
    caller = await made(engine, "ci")

    async def fail(name: str) -> bytes | None:
        raise StoreUnavailableError("the store", "away")

    monkeypatch.setattr(store_of(engine), "read_cell", fail)

    assert (await caller.get("/api/v1/runs")).status == 503


async def test_changes_by_a_key_are_in_the_audit_log(engine: TestEngine) -> None:
    """A change by a key is in the audit log with the id of the key and the address, and a read is not. [S37]"""
    caller = await made(engine, "ci")
    assert (await caller.post("/api/v1/runs", {"workflow": "api_patient", "id": "run-2"})).status == 201
    assert (await caller.get("/api/v1/runs/run-2")).status == 200
    assert (await caller.post("/api/v1/runs/run-2/cancel", {"reason": "no"})).status == 202

    (entry,) = await engine.audit.list(verb="cancel")
    assert (entry.actor, entry.target, entry.reason, entry.via, entry.address) == ("ci", "run-2", "no", "http", FAR)
    assert entry.key == (await engine.keys.list())[0].id
    assert [row for row in await said(engine) if "run-2" in row] == ["ci start run-2", "ci cancel run-2"]


async def test_refused_requests_are_in_the_audit_log(engine: TestEngine) -> None:
    """A refused request is in the audit log with its principal if that is known, and a flood of them does not fill the
    store. [S5 S37]"""
    caller = await made(engine, "looker", "viewer")
    assert (await caller.post("/api/v1/runs/run-1/cancel")).status == 403
    wrong = Caller(Api(engine, auth="keys"), key="wrong", address=FAR)
    assert (await wrong.get("/api/v1/runs")).status == 401
    assert (await Caller(Api(engine, auth="keys")).get("/api/v1/runs")).status == 401

    assert await said(engine) == [
        "denied looker runs.cancel /api/v1/runs/run-1/cancel",
        "denied unknown GET /api/v1/runs",
    ]
    for _ in range(100):
        assert (await caller.post("/api/v1/runs/run-1/cancel")).status == 403
    assert len(await said(engine)) <= 1 + OWN_ROWS.burst
    assert (await engine.audit.verify()).is_whole


async def test_a_trusted_proxy_says_who_asks(engine: TestEngine) -> None:
    """From its own address only, once, and by a name that is one. [S7]"""
    door = TrustedHeader("X-Forwarded-User", proxies=["10.0.0.0/29", "fd00::1"], scope="operator")
    app = Api(engine, auth=first_of(StoredKeys(engine), door))

    async def status(name: str, *, address: str = PROXY) -> int:
        return (await Caller(app, address=address).get("/api/v1/runs", headers={"x-forwarded-user": name})).status

    assert [await status("ann@example.org", address=it) for it in (PROXY, "fd00::1", "::ffff:10.0.0.5")] == [200] * 3
    assert [await status("ann", address=it) for it in (FAR, "127.0.0.1", "10.0.0.9", "", "fd00::2")] == [401] * 5
    assert [await status(it) for it in ("", " ", "ann, bob", "a\tb", "x" * 201)] == [401] * 5
    await engine.start(shop.api_patient, id="run-1")
    await Caller(app, address=PROXY).post("/api/v1/runs/run-1/cancel", headers={"x-forwarded-user": "ann"})
    assert await said(engine) == ["ann cancel run-1"]


async def test_groups_say_what_people_may_do(engine: TestEngine) -> None:
    """The highest counts; without a group that is known the door is shut."""
    door = TrustedHeader(
        "x-user", proxies=[PROXY], scope=None, groups="x-groups", scopes={"ops": "operator", "all": "viewer"}
    )
    app = Api(engine, auth=door)

    async def statuses(groups: str) -> list[int]:
        caller, headers = Caller(app, address=PROXY), {"x-user": "ann", "x-groups": groups}
        looked = await caller.get("/api/v1/runs", headers=headers)
        return [looked.status, (await caller.post("/api/v1/runs/no/cancel", headers=headers)).status]

    assert await statuses("all, ops") == [200, 404]
    assert await statuses("all") == [200, 403]
    assert await statuses("others") == [401, 401]


@pytest.mark.parametrize("twice", [{"X-Groups": "ops"}, {"X-User": "root"}])
async def test_a_header_of_the_proxy_that_comes_twice_is_not_believed(
    engine: TestEngine, twice: dict[str, str]
) -> None:
    """A proxy that adds its own to what it forwards would give people the groups that they ask for. [S7]"""
    door = TrustedHeader("x-user", proxies=[PROXY], groups="x-groups", scopes={"ops": "operator"})
    headers = {"x-user": "eve", "x-groups": "all"}
    eve = Caller(Api(engine, auth=door), address=PROXY)

    assert (await eve.get("/api/v1/runs", headers=headers)).status == 200
    assert (await eve.get("/api/v1/runs", headers=headers | twice)).status == 401


@pytest.mark.parametrize(
    "wrong",
    [{"proxies": []}, {"proxies": ["proxy"]}, {"scope": "root"}, {"groups": "x"}, {"scopes": {"a": "viewer"}}],
)
def test_a_trusted_header_without_sense_is_refused(wrong: dict[str, object]) -> None:
    """When the server starts."""
    with pytest.raises(ConfigurationError):
        TrustedHeader("x-user", **{"proxies": [PROXY], **wrong})  # type: ignore[arg-type]


def test_an_unknown_kind_of_auth_is_refused() -> None:
    """An unknown kind of `auth` is refused with the kinds that there are."""
    with pytest.raises(ConfigurationError, match="'loopback', 'keys'"):
        Api(TestEngine(), auth="open")  # type: ignore[arg-type]


async def test_keys_and_the_log_over_http(engine: TestEngine) -> None:
    """An administrator makes a key, sees it, revokes it, and sees that in the log."""
    admin = await made(engine, "root", "admin")
    new = await admin.post("/api/v1/keys", {"name": "ci", "scope": "operator", "workflows": ["api_order"]})
    assert new.status == 201
    secret, key_id = new.data["secret"], new.data["key"]["id"]
    assert (await Caller(Api(engine, auth="keys"), key=secret).get("/api/v1/workflows")).status == 200
    listed = await admin.get("/api/v1/keys")
    assert {key["name"] for key in listed.data["items"]} == {"ci", "root"}
    assert secret.encode() not in listed.body
    revoked = await admin.post(f"/api/v1/keys/{key_id}/revoke", {"reason": "lost"})
    assert (revoked.status, revoked.data["status"]) == (200, "revoked")
    assert (await Caller(Api(engine, auth="keys"), key=secret).get("/api/v1/workflows")).status == 401
    assert (await admin.post("/api/v1/keys/nothing/revoke")).status == 404

    page = (await admin.get(f"/api/v1/audit?target={key_id}&limit=1")).data
    assert [(it["actor"], it["verb"], it["reason"]) for it in page["items"]] == [("root", "key.revoke", "lost")]
    older = (await admin.get(f"/api/v1/audit?target={key_id}&after={page['next']}")).data
    assert [it["verb"] for it in older["items"]] == ["key.create"]
    check = (await admin.get("/api/v1/audit/verify")).data
    assert (check["rows"], check["problems"]) == (3, [])
