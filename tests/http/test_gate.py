"""The gate: default deny, for every route; which pages and names may use it; how much may be sent."""

from __future__ import annotations

import ast
import asyncio
import gzip
import inspect
from collections.abc import AsyncIterator
from typing import Any

import pytest

from outlive._features.security.key import LADDER, SCOPES, Scope
from outlive.dashboard.files import pages
from outlive.engine import any_engine
from outlive.errors import ConfigurationError, StoreUnavailableError
from outlive.errors.known import ERRORS
from outlive.http import Api, ApiLimits, Asking, FixedKeys, Principal, first_of, loopback
from outlive.http.guesses import Guesses, Meter
from outlive.http.operation import OPERATIONS, Call, Operation, operation
from outlive.http.principal import WITHIN_WORKFLOWS, is_loopback
from outlive.http.problem import STATUSES, problem_of, status_of
from outlive.http.server import check_address
from outlive.limits import TokenBucket
from outlive.testing import TestEngine
from tests.http import shop
from tests.http.caller import Caller, served
from tests.http.problems import example_of

KEYS: dict[Scope, str] = {scope: f"{scope}-0123456789-0123456789-0123456789" for scope in SCOPES}
LIMITED = "limited-0123456789-0123456789-0123456789"
AUTH = FixedKeys(
    {key: Principal(f"the {scope}", frozenset({scope})) for scope, key in KEYS.items()}
    | {LIMITED: Principal("limited", frozenset({"admin", "worker"}), frozenset({"api_order"}))}
)
FAR = "192.0.2.7"


@pytest.fixture
async def engine() -> AsyncIterator[TestEngine]:
    """An engine."""
    async with TestEngine(worker=False) as engine:
        yield engine


def path_of(it: Operation) -> str:
    """The path of an operation, with something for each name in it."""
    return it.path.format(**dict.fromkeys(it.names, "x"))


def may(own: Scope, scope: str) -> bool:
    """Whether a key with this scope may use an operation with that one."""
    if scope == "none" or own == scope:
        return True
    return own in LADDER and scope in LADDER and LADDER.index(own) > LADDER.index(scope)


@pytest.mark.parametrize("name", sorted(OPERATIONS))
async def test_every_route_asks_for_its_scope(engine: TestEngine, name: str) -> None:
    """Without a key nothing is shown but probes; with one, what its scope allows. [S3 S6 FE-O14]"""
    it = OPERATIONS[name]
    app = Api(engine, auth=AUTH)
    stranger = Caller(app, address=FAR)
    without = [await stranger.send(method, path_of(it)) for method in (it.method, "PATCH")]
    wrong = await Caller(app, key="wrong" * 10).send(it.method, path_of(it))
    allowed = {scope: await Caller(app, key=KEYS[scope]).send(it.method, path_of(it), headers=ODD) for scope in SCOPES}

    is_open = it.scope == "none"
    assert [is_open, False, is_open] == [each.status != 401 for each in (*without, wrong)]
    assert {scope: may(scope, it.scope) for scope in SCOPES} == {s: each.status != 403 for s, each in allowed.items()}
    limited = await Caller(app, key=LIMITED).send(it.method, path_of(it), headers=ODD)
    is_refused = limited.status == 403 and "limited may use: some workflows only" in limited.data["detail"]
    assert (it.reach not in WITHIN_WORKFLOWS and not is_open) is is_refused


ODD = {"idempotency-key": "\t"}
"""What is let through is refused behind the gate, and does nothing."""


@pytest.mark.parametrize(
    "path",
    [
        "/health/live/",
        "//health/live",
        "/health/live/configs",
        "/health/./live",
        "/x/../health/live",
        "/health/LIVE",
        "/health/live;x",
        "/health%2flive",
        "/api/v1/runs/health",
        "/api/v1/runs?x=/health/live",
        "/health/live%00",
        "/",
        "/api",
    ],
)
async def test_no_spelling_of_a_path_is_a_probe(engine: TestEngine, path: str) -> None:
    """An operation is open, and not a path that looks like it."""
    assert 401 == (await Caller(Api(engine, auth=AUTH), address=FAR).get(path)).status


async def test_only_this_machine_needs_no_key(engine: TestEngine) -> None:
    """A caller on this machine needs no key; one with another address, behind a proxy or with a wrong key is refused.
    [S1 S2]"""
    app = Api(engine)
    forwarded = {"x-forwarded-for": "192.0.2.1"}

    assert 200 == (await Caller(app).get("/api/v1/runs")).status
    assert 200 == (await Caller(app, address="::1").get("/api/v1/runs")).status
    assert 401 == (await Caller(app, address=FAR).get("/api/v1/runs")).status
    assert 401 == (await Caller(app, address="").get("/api/v1/runs")).status
    assert 401 == (await Caller(app).get("/api/v1/runs", headers=forwarded)).status
    assert 401 == (await Caller(app, key="x").get("/api/v1/runs")).status
    both = Api(engine, auth=first_of(loopback, AUTH))
    assert [200, 200] == [(await Caller(both, key=key).get("/api/v1/runs")).status for key in ("", KEYS["viewer"])]


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:7717", "127.0.0.1:80", "[::1]", "[::1]:7717"])
async def test_this_machine_is_called_by_any_of_its_names(engine: TestEngine, host: str) -> None:
    """With a port or without one, and in brackets if it is an address of IPv6."""
    assert (await Caller(Api(engine)).get("/api/v1/runs", headers={"host": host})).status == 200


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "", "127.0.0.2", "[::2]", "a, localhost"])
async def test_another_host_is_refused(engine: TestEngine, host: str) -> None:
    """A name that was rebound to this machine is not its own."""
    answer = await Caller(Api(engine)).get("/api/v1/runs", headers={"host": host})

    assert (403, "host_refused") == (answer.status, answer.code)


@pytest.mark.parametrize(
    ("host", "status"),
    [("10.0.0.5:7717", 200), ("[fd00::5]:7717", 200), ("evil.example", 403), ("", 403), ("10.0.0.5.evil.example", 403)],
)
@pytest.mark.parametrize("probe", ["live", "ready", "startup"])
async def test_probes_call_a_server_by_its_address(engine: TestEngine, probe: str, host: str, status: int) -> None:
    """A probe may name the server by its address, as Kubernetes does; a host name of another site is refused, and so is
    any other path."""
    api = Caller(Api(engine))

    assert status == (await api.get(f"/health/{probe}", headers={"host": host})).status
    for path in ("/metrics", "/api/v1/health", "/api/v1/openapi.json", "/health/%6Cive/x"):
        assert 403 == (await api.get(path, headers={"host": host})).status


async def test_hosts_and_origins_that_were_given_are_let_through(engine: TestEngine) -> None:
    """A page of another site may not send anything, unless it was named."""
    api = Caller(Api(engine, hosts=["Api.example"], origins=["https://admin.example/"]))
    body = {"workflow": "x"}

    async def post(origin: str) -> int:
        headers = {"host": "api.example:80", "origin": origin}
        return (await api.post("/api/v1/runs", body, headers=headers)).status

    assert 404 == await post("https://admin.example")
    assert 404 == await post("http://api.example:80")
    assert [403, 403, 403] == [await post(it) for it in ("https://evil.example", "null", "http://api.example:81")]
    cross = {"host": "api.example", "sec-fetch-site": "cross-site"}
    assert 403 == (await api.post("/api/v1/runs", body, headers=cross)).status
    named = cross | {"origin": "https://admin.example"}
    assert 200 == (await api.get("/api/v1/runs", headers=named)).status
    anything = Caller(Api(engine, auth=AUTH, hosts=["*"]), key=KEYS["viewer"])
    assert 200 == (await anything.get("/api/v1/runs", headers={"host": "x"})).status


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("site", ["cross-site", "same-site"])
async def test_a_page_of_another_site_does_not_read_the_api(engine: TestEngine, method: str, site: str) -> None:
    """A page of another site cannot read the API, not even as a picture or a script without an `Origin`; probes and
    pages are for anyone. [S2]"""
    api = Caller(Api(engine, pages=pages()))
    asked = {"sec-fetch-site": site}

    answer = await api.send(method, "/api/v1/runs", headers=asked)
    assert 403 == answer.status
    assert (answer.headers["content-type"], answer.headers["cache-control"]) == ("application/problem+json", "no-store")
    assert 200 == (await api.send(method, "/health/live", headers=asked)).status
    assert 200 == (await api.send(method, "/", headers=asked)).status
    assert 200 == (await api.send(method, "/api/v1/runs", headers={"sec-fetch-site": "same-origin"})).status


async def test_an_http_1_0_client_is_not_taken_for_a_program_of_this_machine(engine: TestEngine) -> None:
    """A client with HTTP/1.0 needs a key, because nginx speaks it by default and does not say for whom it asks. [S1]"""
    keys = first_of(loopback, AUTH)
    async with served(Api(engine, auth=keys)) as port:

        async def status(version: str, header: str = "") -> str:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            head = f"GET /api/v1/runs HTTP/{version}\r\nHost: 127.0.0.1:{port}\r\n{header}Connection: close\r\n\r\n"
            writer.write(head.encode())
            line = (await reader.readline()).decode()
            writer.close()
            return line.split()[1]

        assert ["200", "401"] == [await status("1.1"), await status("1.0")]
        assert "200" == await status("1.0", f"Authorization: Bearer {KEYS['viewer']}\r\n")


async def test_wrong_keys_and_many_requests_are_slowed_down(engine: TestEngine) -> None:
    """One address cannot try keys for ever, and one principal cannot take everything. [S5]"""
    app = Api(engine, auth=AUTH, limits=ApiLimits(rate=TokenBucket(rate=0.001, burst=3)))
    statuses = [(await Caller(app, key="w" * 40).get("/api/v1/runs")).status for _ in range(25)]
    last = await Caller(app, key="w" * 40).get("/api/v1/runs")
    viewer = [(await Caller(app, key=KEYS["viewer"], address=FAR).get("/api/v1/runs")).status for _ in range(4)]
    admin = await Caller(app, key=KEYS["admin"], address=FAR).get("/api/v1/runs")

    assert [401] * 20 + [429] * 5 == statuses
    assert (429, "rate_limited", "1") == (last.status, last.code, last.headers["retry-after"])
    assert ([200, 200, 200, 429], 200) == (viewer, admin.status)


async def test_a_right_key_passes_though_others_at_its_address_try_keys(engine: TestEngine) -> None:
    """A right key passes though others at its address try keys, also one that this server has not seen yet. [S5]"""
    app = Api(engine, auth="keys")
    key = (await engine.keys.create("ci")).secret
    wrong = f"{key[:-4]}{'aaaa' if not key.endswith('aaaa') else 'bbbb'}"
    await engine.start(shop.api_patient, id="run-0")
    token = (await Caller(app, key=key, address="192.0.2.99").post("/api/v1/runs/run-0/tokens", {})).data["token"]
    tried = [(await Caller(app, key=it).get("/api/v1/runs")).status for _ in range(13) for it in ("w" * 40, wrong)]

    assert tried == [401] * 20 + [429] * 6
    assert (await Caller(app, key=key).get("/api/v1/runs")).status == 200
    assert (await Caller(app, key=token).get("/api/v1/runs/run-0/streams")).status == 200
    assert (await Caller(app, key=wrong).get("/api/v1/runs")).status == 429


async def test_a_network_of_ipv6_is_one_address_that_tries_keys(engine: TestEngine) -> None:
    """One computer has all addresses of its network, as many as it wants. [S5]"""
    app = Api(engine, auth=AUTH)
    callers = [Caller(app, key="w" * 40, address=f"2001:db8::{number:x}") for number in range(25)]
    statuses = [(await caller.get("/api/v1/runs")).status for caller in callers]
    other = await Caller(app, key="w" * 40, address="2001:db8:0:1::1").get("/api/v1/runs")

    assert [401] * 20 + [429] * 5 == statuses
    assert other.status == 401


async def test_a_principal_without_a_name_is_not_let_in(engine: TestEngine) -> None:
    """A principal without a name is refused, because the audit log could not name it and its overrides would count as
    the program's. [S3 S37]"""

    async def nameless(asking: Asking) -> Principal:
        return Principal("", frozenset({"operator"}))

    answer = await Caller(Api(engine, auth=nameless)).post("/api/v1/runs", {"workflow": "api_order", "arguments": [1]})

    assert (answer.status, answer.code) == (401, "unauthenticated")
    assert await engine.count() == 0


async def test_two_keys_with_one_name_have_a_rate_each(engine: TestEngine) -> None:
    """Two tenants call their programs the same, and neither uses up what the other may send. [S33 S51]"""
    app = Api(engine, auth="keys", limits=ApiLimits(rate=TokenBucket(rate=0.001, burst=2)))
    keys = [(await engine.keys.create("app", tags={"tenant": tenant})).secret for tenant in ("a", "b")]
    statuses = [
        [(await Caller(app, key=key, address=FAR).get("/api/v1/runs")).status for _ in range(3)] for key in keys
    ]

    assert [[200, 200, 429]] * 2 == statuses


async def test_a_principal_of_some_workflows_sees_no_others(engine: TestEngine) -> None:
    """Runs of others are not there; lists have to name a workflow of its own. [S12]"""
    api = Caller(Api(engine, auth=AUTH), key=LIMITED)
    for workflow in (shop.api_order, shop.api_patient):
        await engine.start(workflow.name, [1] if workflow is shop.api_order else [], id=workflow.name)

    assert [200, 404] == [(await api.get(f"/api/v1/runs/{name}")).status for name in ("api_order", "api_patient")]
    unknown = await api.get("/api/v1/runs/nothing")
    hidden = await api.get("/api/v1/runs/api_patient")
    assert unknown.body == hidden.body.replace(b"api_patient", b"nothing")
    assert [403, 403, 200] == [
        (await api.get(f"/api/v1/runs{query}")).status for query in ("", "?workflow=api_patient", "?workflow=api_order")
    ]
    assert ["api_order"] == [each["name"] for each in (await api.get("/api/v1/workflows")).data["items"]]
    assert 404 == (await api.post("/api/v1/runs", {"workflow": "api_patient"})).status
    assert 403 == (await api.post("/api/v1/bulk/cancel", {"workflow": "api_order"})).status


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/runs/x/approvals/refund/approve", {}),
        ("/runs/x/pause", {}),
        ("/workflows/api_order/pause", {}),
        ("/queues/mail/pause", {}),
        ("/schedules/digest/pause", {}),
        ("/store/pause", {}),
        ("/bulk/pause", {"workflow": "api_order"}),
        ("/bulk/operations", {"workflow": "api_order", "verb": "cancel"}),
        ("/bulk/operations/purge", {"workflow": "api_order"}),
        ("/flows", {"document": "name: x"}),
        ("/flows/drafts", {"document": "name: x"}),
        ("/flows/x/publish", {}),
        ("/flows/x/rollback", {}),
        ("/flows/x/disable", {}),
    ],
)
async def test_an_act_is_that_of_the_principal_of_the_key(engine: TestEngine, path: str, body: dict[str, Any]) -> None:
    """A request is refused if it names another person: the owner of the key acts. [S38]"""
    api = Caller(Api(engine, auth=AUTH), key=KEYS["admin"])
    answer = await api.post(f"/api/v1{path}", body | {"by": "ann"})

    assert (403, "forbidden") == (answer.status, answer.code)
    assert "cannot act for another person" in answer.data["detail"]


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"{", {}, 400),
        (b"", {"content-type": "application/json"}, 400),
        (b"\xff", {}, 400),
        (b'{"workflow": "\\ud800"}', {}, 400),
        (b'{"workflow": NaN}', {}, 400),
        (b"[" * 101 + b"]" * 101, {}, 400),
        (b"[" * 100_000, {}, 400),
        (b'{"workflow": "x", "arguments": ' + b"[" * 100 + b"]" * 100 + b"}", {}, 400),
        (b'{"workflow": "x", "arguments": ' + b"[" * 99 + b"]" * 99 + b"}", {}, 404),
        (b'{"workflow": "' + b"[" * 200 + b'"}', {}, 404),
        (b'{"workflow": "x"}' + b" " * 2_000, {}, 413),
        (b'{"workflow": "x"}', {"content-length": "99999999999999999999"}, 413),
        (b'{"workflow": "x"}', {"content-length": "-1"}, 400),
        (b"workflow=x", {"content-type": "application/x-www-form-urlencoded"}, 415),
        (b'{"workflow": "x"}', {"content-type": "text/plain"}, 415),
        (b'{"workflow": "x"}', {"content-type": ""}, 415),
        (gzip.compress(b'{"workflow": "x"}', mtime=0), {"content-encoding": "gzip"}, 415),
    ],
)
async def test_bodies_that_cannot_be_read_are_refused(
    engine: TestEngine, body: bytes, headers: dict[str, str], status: int
) -> None:
    """Before anything of them is used. [S10 S18 S35]"""
    limits = ApiLimits(body_bytes_max=300_000 if len(body) > 50_000 else 1_500)
    answer = await Caller(Api(engine, limits=limits)).post("/api/v1/runs", body=[body], headers=headers)

    assert status == answer.status, answer.body


@pytest.mark.parametrize(
    ("path", "body", "choices"),
    [
        ("runs?status=sleepy", None, "'pending' or 'running'"),
        ("runs", {"workflow": "api_order", "on_conflict": "fight"}, "give 'attach' or 'attach_open' or 'reject'"),
    ],
)
async def test_a_value_that_is_not_a_choice_is_answered_with_the_choices(
    engine: TestEngine, path: str, body: object, choices: str
) -> None:
    """A parameter or a field with a value that is not among its choices gets 400 with the choices."""
    api = Caller(Api(engine))
    answer = await (api.get(f"/api/v1/{path}") if body is None else api.post(f"/api/v1/{path}", body))

    assert (answer.status, answer.code) == (400, "malformed"), answer.body
    assert choices in answer.data["detail"]


async def test_a_document_below_a_mount_says_where_the_api_is(engine: TestEngine) -> None:
    """Clients are generated from it; where nothing is mounted, it is the file in the repository."""
    api = Caller(Api(engine))
    mounted = await api.get("/outlive/api/v1/openapi.json", root="/outlive")

    assert mounted.data["servers"] == [{"url": "/outlive"}]
    assert "servers" not in (await api.get("/api/v1/openapi.json")).data


async def test_methods_and_paths_that_are_not_there(engine: TestEngine) -> None:
    """A method that a path does not take is named with the methods that it takes; HEAD is GET without the body."""
    api = Caller(Api(engine))
    wrong, unknown = await api.send("DELETE", "/api/v1/runs"), await api.get("/api/v1/nothing")
    head = await api.send("HEAD", "/health/live")
    mounted = await api.get("/outlive/health/live", root="/outlive")
    deep = await api.get("/" + "x/" * 50)

    assert (405, "GET, HEAD, POST") == (wrong.status, wrong.headers["allow"])
    assert [(404, "not_found")] * 2 == [(it.status, it.code) for it in (unknown, deep)]
    assert (200, b"", "15") == (head.status, head.body, head.headers["content-length"])
    assert 200 == mounted.status
    encoded = await api.get("/api/v1/runs/a%2Fb")
    assert (404, "run_not_found") == (encoded.status, encoded.code)


async def test_a_failure_of_ours_shows_nothing(
    engine: TestEngine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """No stack, no statement, no path: the log has them, and no stack for a store that is away. [S44]"""
    secrets = {
        RuntimeError("SELECT * FROM /var/lib/secret"): (500, "internal"),
        StoreUnavailableError("/var/lib/secret", "SELECT"): (503, "store_unavailable"),
    }
    for error, expected in secrets.items():

        async def fail(raised: Exception = error) -> None:
            raise raised

        monkeypatch.setattr(engine.workflows, "list", fail)
        answer = await Caller(Api(engine)).get("/api/v1/workflows")
        assert expected == (answer.status, answer.code)
        assert b"secret" not in answer.body
        assert b"SELECT" not in answer.body
    assert [(it.levelname, it.message, bool(it.exc_info)) for it in caplog.records] == [
        ("ERROR", "workflows.list was answered with 500: RuntimeError", True),
        ("ERROR", "workflows.list was answered with 503: StoreUnavailableError", False),
    ]


def test_only_the_senders_of_late_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A flood of addresses takes no memory: the address that has not asked for the longest time is forgotten."""
    monkeypatch.setattr("outlive.http.guesses.COUNTED_MAX", 2)
    now = [0.0]
    meter, guesses = Meter(TokenBucket(rate=1, burst=1), lambda: now[0]), Guesses(lambda: now[0])
    for sender in ("a", "b", "a", "c"):
        meter.count(sender)
    for key in ("k-1", "k-2", "k-1", "k-3"):
        guesses.note_right(key)
    for _ in range(20):
        guesses.note_wrong("k-0", "192.0.2.1")

    assert [True, False, True] == [meter.wait(sender) > 0 for sender in ("a", "b", "c")]
    assert [False, True, False] == [guesses.wait(f"k-{number}", "192.0.2.1") > 0 for number in (1, 2, 3)]
    assert 2 == meter.wait("a")
    now[0] = 2.0
    assert [0, 0] == [meter.wait(sender) for sender in ("a", "c")]
    for _ in range(20):
        guesses.note_wrong("k-1", "192.0.2.1")
    assert guesses.wait("k-1", "192.0.2.1") > 0


async def test_a_parameter_or_body_that_an_operation_does_not_take_is_refused(engine: TestEngine) -> None:
    """A parameter or a body that an operation does not take is refused and not ignored."""
    api = Caller(Api(engine))
    pause = "/api/v1/store/resume"

    for answer, said in (
        (await api.post(f"{pause}?queue=mail"), "store.resume takes no parameter 'queue'"),
        (await api.post(pause, {"queue": "mail"}), "store.resume takes no body"),
    ):
        assert (400, "malformed") == (answer.status, answer.code)
        assert said in answer.data["detail"]
    assert [200, 200] == [(await api.post(f"{pause}?")).status, (await api.send("POST", pause, body=b" \n")).status]


def test_every_error_that_a_verb_says_it_raises_has_a_row() -> None:
    """An error in the docstring of a verb of the engine is answered as one of the caller's, and never with 500."""
    verbs = ast.parse(inspect.getsource(any_engine))
    said = {
        name
        for node in ast.walk(verbs)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for name in ERRORS
        if name in (ast.get_docstring(node) or "").partition("Raises:")[2]
    }
    answered_otherwise = {"AskFailedError", "AskTimeoutError", "ArchiveError", "ResultTimeoutError"}
    unanswered = {name for name in said if problem_of(example_of(ERRORS[name])).status == 500} - answered_otherwise

    assert len(said) > 15
    assert set() == unanswered


def test_problems_say_what_to_do() -> None:
    """Every error has a status of its caller's or of the moment, and a next step."""
    assert all(400 <= status < 500 or status == 503 for status in STATUSES.values())
    assert all(problem_of(example_of(kind)).next.endswith(".") for kind in ERRORS.values() if status_of(kind))


def test_a_public_address_needs_keys() -> None:
    """A server that anyone can reach and use does not start. [S1 S4]"""
    for address in ("127.0.0.1", "::1", "localhost"):
        check_address(address, has_keys=False)
    check_address("0.0.0.0", has_keys=True)
    for address in ("0.0.0.0", "::", "192.0.2.1", "example.org"):
        with pytest.raises(ConfigurationError, match="other machines"):
            check_address(address, has_keys=False)
    with pytest.raises(ConfigurationError, match="fewer than 32 characters"):
        FixedKeys({"short": Principal("ci", frozenset({"viewer"}))})
    assert [True, True, False] == [is_loopback(it) for it in ("::ffff:127.0.0.1", "127.8.8.8", "::ffff:10.0.0.1")]
    assert not Asking({"via": "1.1 x"}, "127.0.0.1").is_local


def test_an_operation_without_a_scope_is_an_error() -> None:
    """When its module is imported."""

    async def look(call: Call) -> None:
        """Look."""

    with pytest.raises(AssertionError, match="no scope"):
        operation("x.look", "GET", "/x", scope="")(look)
    with pytest.raises(AssertionError, match="same method and path"):
        operation("x.look", "GET", "/runs", scope="viewer")(look)
