"""Webhooks: who may send, what is read, and that one delivery is one run."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import msgspec
import pytest

from outlive import flow
from outlive.errors import CommitUnknownError, EngineClosedError, OutliveError, StoreUnavailableError
from outlive.errors.run import QuotaExceededError
from outlive.http import Api, ApiLimits, Webhooks
from outlive.http.nesting import CONTAINERS_MAX
from outlive.http.signature import WINDOW_SECONDS, signed_headers
from outlive.testing import TestEngine

HOOKS = """
name: hooked.{name}
input: {{ order: any, kind: {{ type: string, default: plain }} }}
vars:
  key: {{ type: string, secret: true, env: HOOKED_KEY }}
triggers:
  - webhook: /hooks/{name}
    {more}
steps:
  look: {{ use: noop }}
output: "${{{{ input }}}}"
"""
TRIES = 60
OLD, NEW = "old-token-1234", "new-token-5678"
SECRET = "whsec_" + base64.b64encode(b"a key of 24 bytes or more").decode()
MAPPED = 'input: { order: "${{ event.data }}", kind: "${{ event.headers[\'x-kind\'] + event.query.q }}" }'


class Answer(msgspec.Struct):
    """What the app said."""

    status: int
    headers: dict[str, str]
    data: Any


async def post(
    app: Webhooks,
    path: str,
    body: bytes = b'{"order": 7}',
    headers: Mapping[str, str] | None = None,
    *,
    method: str = "POST",
    query: bytes = b"",
    chunks: int = 1,
) -> Answer:
    """One request, given to the app as a server would."""
    size = -(-len(body) // chunks) or 1
    parts = [body[begin : begin + size] for begin in range(0, len(body), size)] or [b""]
    messages = [
        {"type": "http.request", "body": part, "more_body": index + 1 < len(parts)} for index, part in enumerate(parts)
    ]
    own = {"content-type": "application/json"} | dict(headers or {})
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": query,
        "headers": [(name.encode(), value.encode()) for name, value in own.items() if value],
    }
    said: list[Any] = []

    async def receive() -> Any:
        return messages.pop(0) if messages else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        said.append(message)

    await app(scope, receive, send)
    start, *parts_said = said
    given = {name.decode(): value.decode() for name, value in start["headers"]}
    given = {name.decode(): value.decode() for name, value in start["headers"]}
    return Answer(start["status"], given, msgspec.json.decode(b"".join(each["body"] for each in parts_said)))


def github_headers(key: bytes, body: bytes) -> dict[str, str]:
    """What GitHub signs."""
    return {"x-hub-signature-256": f"sha256={hmac.new(key, body, hashlib.sha256).hexdigest()}"}


@pytest.fixture(autouse=True)
def _flows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOKED_KEY", SECRET)
    monkeypatch.setenv("HOOKED_TOKENS", f"{OLD} {NEW}")
    flow.parse(HOOKS.format(name="open", more="manual: false"))
    flow.parse(HOOKS.format(name="token", more="token: key").replace("HOOKED_KEY", "HOOKED_TOKENS"))
    flow.parse(HOOKS.format(name="signed", more="hmac: key"))
    flow.parse(HOOKS.format(name="github", more="hmac: { key: key, layout: github }"))
    flow.parse(HOOKS.format(name="mapped", more=f'if: "event.data.order != 0"\n    {MAPPED}'))


@pytest.fixture
async def engine() -> AsyncIterator[TestEngine]:
    """An engine."""
    async with TestEngine() as engine:
        yield engine


async def test_a_request_is_a_run_and_one_delivery_is_one_run(engine: TestEngine) -> None:
    """The answer has the id of the run, which is durable by then; sent again it is the same. [FB-R3 FB-R8 FE-T7]"""
    app = Webhooks(engine)
    first = await post(app, "/hooks/open", headers={"webhook-id": "d-1"})
    again = await post(app, "/hooks/open", headers={"webhook-id": "d-1"}, chunks=3)
    other = await post(app, "/hooks/open")
    assert (202, 202, 202) == (first.status, again.status, other.status)
    assert first.data["run_id"] == again.data["run_id"] != other.data["run_id"]
    assert [True, False] == [each.data["runs"][0]["is_new"] for each in (first, again)]
    assert {"order": 7, "kind": "plain"} == await engine.get(first.data["run_id"]).result()
    assert "d-1" == (await engine.get(first.data["run_id"]).info()).tags["event_id"]


async def test_a_trigger_maps_the_request_and_may_leave_it_out(engine: TestEngine) -> None:
    """By body, headers and query; what its condition leaves out is answered and starts nothing."""
    app = Webhooks(engine)
    found = await post(app, "/hooks/mapped", headers={"X-Kind": "big "}, query=b"q=one")
    assert {"order": {"order": 7}, "kind": "big one"} == await engine.get(found.data["run_id"]).result()
    left = await post(app, "/hooks/mapped", b'{"order": 0}')
    assert (200, []) == (left.status, left.data["runs"])
    wrong = await post(app, "/hooks/mapped")
    assert (422, "unprocessable_content") == (wrong.status, wrong.data["code"])
    assert "x-kind" in wrong.data["detail"]
    assert wrong.data["next"].startswith("Correct what `detail` names")


async def test_a_form_is_read(engine: TestEngine) -> None:
    """A form that is sent to a webhook is read as text by name."""
    form = {"content-type": "application/x-www-form-urlencoded; charset=utf-8"}
    found = await post(Webhooks(engine), "/hooks/open", b"order=7&kind=%C3%A4", form)
    assert {"order": "7", "kind": "ä"} == await engine.get(found.data["run_id"]).result()


async def test_a_request_that_is_not_a_webhook_is_refused(engine: TestEngine) -> None:
    """A request that is not a webhook, by path, method, type, length or body, is refused with a status that says why,
    and starts nothing. [S10]"""
    app = Webhooks(engine, limits=ApiLimits(body_bytes_max=100))
    assert 404 == (await post(app, "/hooks/nothing")).status
    refused = await post(app, "/hooks/open", method="GET")
    assert (405, "POST") == (refused.status, refused.headers["allow"])
    assert 415 == (await post(app, "/hooks/open", headers={"content-type": "text/plain"})).status
    assert 415 == (await post(app, "/hooks/open", headers={"content-type": ""})).status
    assert 413 == (await post(app, "/hooks/open", b'"' + b"x" * 200 + b'"', chunks=5)).status
    assert 413 == (await post(app, "/hooks/open", headers={"content-length": "101"})).status
    assert 413 == (await post(app, "/hooks/open", headers={"content-length": "9" * 5_000})).status
    assert 400 == (await post(app, "/hooks/open", headers={"content-length": "-1"})).status
    for bad in (b"{", b'{"order": NaN}', b"\xff", b""):
        assert 400 == (await post(app, "/hooks/open", bad)).status
    assert 400 == (await post(Webhooks(engine), "/hooks/open", b"[" * 10_000)).status
    assert 400 == (await post(app, "/hooks/open", headers={"webhook-id": "x" * 201})).status
    for unfit in (b'{"order": 7, "kind": 8}', b"[]", b"{}"):
        assert 422 == (await post(app, "/hooks/open", unfit)).status
    assert [] == await engine.list()


async def test_a_sender_that_hangs_up_starts_nothing(engine: TestEngine) -> None:
    """A sender that hangs up before its body is there starts no run, and its request ends with 499."""
    said: list[Any] = []

    async def send(message: Any) -> None:
        said.append(message)

    async def hang_up() -> Any:
        return {"type": "http.disconnect"}

    app = Webhooks(engine)
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/hooks/open",
        "headers": [(b"content-type", b"application/json")],
    }
    await app(scope, hang_up, send)
    assert [499, b""] == [said[0]["status"], said[1]["body"]]
    assert [] == await engine.list()


@pytest.mark.parametrize("make", [Api, Webhooks])
async def test_app_answers_the_start_of_its_server_and_no_websocket(
    engine: TestEngine, make: Callable[[TestEngine], Any]
) -> None:
    """There is nothing to do at the start and the end, and a websocket is closed before it is open."""
    said: list[str] = []
    phases = iter(["lifespan.startup", "lifespan.shutdown"])

    async def receive() -> Any:
        return {"type": next(phases)}

    async def send(message: Any) -> None:
        said.append(message["type"])

    await make(engine)({"type": "lifespan"}, receive, send)
    await make(engine)({"type": "websocket"}, receive, send)
    assert said == ["lifespan.startup.complete", "lifespan.shutdown.complete", "websocket.close"]


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (StoreUnavailableError("the store", "it is down"), 503, "send the same request again"),
        (CommitUnknownError("the store", "SELECT"), 503, "send the same request again"),
        (EngineClosedError("sending an event"), 503, "send the same request again"),
        (QuotaExceededError("shop", "starts"), 429, "send the same request again later"),
        (OutliveError("SELECT"), 500, "nothing was started: OutliveError"),
    ],
)
async def test_delivery_that_failed_here_says_whether_to_send_it_again(
    engine: TestEngine, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int, said: str
) -> None:
    """A delivery that failed says whether to send it again, and not what went wrong, which is in the log."""

    async def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(engine.events, "_take", fail)
    answer = await post(Webhooks(engine), "/hooks/open")

    assert (answer.status, answer.headers.get("retry-after")) == (status, None if status == 500 else "5")
    assert said in repr(answer.data)
    assert "SELECT" not in repr(answer.data)


@pytest.mark.parametrize(
    ("kind", "body", "said"),
    [
        ("application/json", b"[" + b"[]," * CONTAINERS_MAX + b"1]", "more than 250,000 maps and lists"),
        ("application/json", b'{"order": "\xff"}', "is not JSON"),
        ("application/x-www-form-urlencoded", "order=7&name=Zoë".encode(), "is not a form"),
        ("application/x-www-form-urlencoded", b"&".join([b"a=1"] * 1_001), "is not a form"),
        ("", b"x", "no Content-Type"),
        ("text/plain", b"x", "text/plain cannot be read"),
    ],
)
async def test_body_that_cannot_be_read_is_refused_with_the_reason(
    engine: TestEngine, kind: str, body: bytes, said: str
) -> None:
    """Before anything starts."""
    app = Webhooks(engine, limits=ApiLimits(open_body_bytes_max=1_000_000))
    answer = await post(app, "/hooks/open", body, {"content-type": kind})

    assert answer.status in (400, 415)
    assert said in repr(answer.data)
    assert [] == await engine.list()


async def test_a_token_lets_the_sender_in(engine: TestEngine) -> None:
    """In either header, the old one and the new one; any other one, or none, does not. (S9) [S9]"""
    app = Webhooks(engine)
    for right in ({"authorization": f"Bearer {OLD}"}, {"Authorization": f"bearer {NEW}"}, {"x-webhook-token": NEW}):
        assert 202 == (await post(app, "/hooks/token", headers=right)).status
    wrongs = ("", "Bearer", f"Basic {NEW}", "Bearer wrong", f"Bearer {OLD} {NEW}", f"Bearer {NEW[:-1]}", "Bearer ä")
    for wrong in wrongs:
        assert 401 == (await post(app, "/hooks/token", headers={"authorization": wrong})).status
    # Before anything of the body is read.
    assert 401 == (await post(app, "/hooks/token", b"no json")).status


async def test_address_that_tries_tokens_is_slowed_down(engine: TestEngine) -> None:
    """After 20 wrong ones no other token of that address is looked at; one that was right lately still passes. [S9]"""
    app = Webhooks(engine)
    assert (await post(app, "/hooks/token", headers={"x-webhook-token": OLD})).status == 202
    guesses = [await post(app, "/hooks/token", headers={"x-webhook-token": f"guess-{it}"}) for it in range(TRIES)]
    assert [it.status for it in guesses[:20]] == [401] * 20
    assert guesses[-1].status == 429  # One more may be tried each second, and the machine may be slow.

    guess = await post(app, "/hooks/token", headers={"x-webhook-token": NEW})
    assert (guess.status, guess.headers["retry-after"]) in [(429, "1"), (429, "2")]
    assert "too many wrong tokens" in guess.data["detail"]
    assert (await post(app, "/hooks/token", headers={"x-webhook-token": OLD})).status == 202
    assert (await post(app, "/hooks/open")).status == 202


async def test_delivery_that_is_refused_for_its_body_is_not_a_guess(engine: TestEngine) -> None:
    """A sender with the right token may send nonsense as often as it likes, and gets 400."""
    app = Webhooks(engine)
    for _ in range(TRIES):
        assert (await post(app, "/hooks/token", b"no json", headers={"x-webhook-token": OLD})).status == 400


async def test_a_signature_covers_id_time_and_body(engine: TestEngine) -> None:
    """In the layout of Standard Webhooks: any change of them, another key or another time is refused. (S9) [S9]"""
    app, body = Webhooks(engine), b'{"order": 7}'
    now = engine.clock.now() / 1_000_000

    async def status(headers: dict[str, str], sent: bytes = body) -> int:
        return (await post(app, "/hooks/signed", sent, headers)).status

    good = signed_headers(SECRET, "msg_1", body, now_seconds=now)
    assert 202 == await status(good)
    assert 202 == await status(good | {"webhook-signature": f"v1,abc {good['webhook-signature']} v2,x"})
    assert 202 == await status(signed_headers(f"whsec_b2xk {SECRET}", "msg_2", body, now_seconds=now))
    assert 401 == await status(good, b'{"order":7}')
    assert 401 == await status(good | {"webhook-id": "msg_9"})
    assert 401 == await status(good | {"webhook-timestamp": str(int(now) + 1)})
    assert 401 == await status(signed_headers("another key", "msg_1", body, now_seconds=now))
    assert 401 == await status(good | {"webhook-timestamp": "9" * 5_000})
    for missing in good:
        assert 401 == await status({name: value for name, value in good.items() if name != missing})
    for seconds in (-WINDOW_SECONDS - 2, WINDOW_SECONDS + 2):
        assert 401 == await status(signed_headers(SECRET, "msg_3", body, now_seconds=now + seconds))
    assert 401 == await status({"webhook-signature": "v1,", "webhook-id": "x", "webhook-timestamp": "²"})
    # What was recorded and is sent again is the same delivery; later it is too old.
    assert 2 == await engine.count(workflow="hooked.signed")
    assert 202 == await status(good)
    assert 2 == await engine.count(workflow="hooked.signed")


async def test_tokens_cannot_be_tried_for_ever(engine: TestEngine) -> None:
    """A token that was right before still passes: its sender may share its address with a guesser. [S5]"""
    app = Webhooks(engine)
    known, other = {"x-webhook-token": NEW}, {"x-webhook-token": OLD}
    assert 202 == (await post(app, "/hooks/token", headers=known)).status

    answers = [await post(app, "/hooks/token", headers={"x-webhook-token": f"guess-{n}"}) for n in range(21)]

    assert [401] * 20 == [each.status for each in answers[:20]]
    assert (429, "2") == (answers[20].status, answers[20].headers["retry-after"])
    assert 202 == (await post(app, "/hooks/token", headers=known)).status
    assert 429 == (await post(app, "/hooks/token", headers=other)).status
    engine.clock.skip_to(engine.clock.now() + 2_000_000)
    assert 202 == (await post(app, "/hooks/token", headers=other)).status


async def test_a_webhook_with_a_token_and_a_signature_wants_both(engine: TestEngine) -> None:
    """Either of them alone is not enough. (S9)"""
    flow.parse(HOOKS.format(name="both", more="token: key\n    hmac: key"))
    app, body = Webhooks(engine), b'{"order": 7}'
    signed = signed_headers(SECRET, "msg_1", body, now_seconds=engine.clock.now() / 1_000_000)
    token = {"x-webhook-token": SECRET}

    answers = [(await post(app, "/hooks/both", body, headers)).status for headers in (signed, token, signed | token)]

    assert answers == [401, 401, 202]


async def test_a_signature_of_github_covers_the_body(engine: TestEngine) -> None:
    """The id in its header is not signed, so the body is what a delivery is known by. (S9) [S9]"""
    app, body = Webhooks(engine), b'{"order": 7}'
    good = github_headers(SECRET.encode(), body)
    first = await post(app, "/hooks/github", body, good | {"x-github-delivery": "one"})
    again = await post(app, "/hooks/github", body, good | {"x-github-delivery": "two"})
    assert (202, first.data["run_id"]) == (again.status, again.data["run_id"])
    assert 401 == (await post(app, "/hooks/github", b'{"order":7}', good)).status


async def test_a_recorded_delivery_of_github_counts_again_when_its_run_is_deleted(engine: TestEngine) -> None:
    """Nothing in its signature says when it was sent: the run is the record that it was taken. [S9]"""
    app, body = Webhooks(engine), b'{"order": 7}'
    recorded = github_headers(SECRET.encode(), body)
    first = await post(app, "/hooks/github", body, recorded)
    await engine.get(first.data["run_id"]).result()
    assert (await post(app, "/hooks/github", body, recorded)).data["runs"][0]["is_new"] is False
    await engine.skip(hours=2)
    assert (await engine.purge(status="succeeded", older_than=0)).deleted == 1

    assert (await post(app, "/hooks/github", body, recorded)).data["runs"][0]["is_new"] is True


async def test_a_trigger_and_no_header_says_what_a_signature_covers(engine: TestEngine) -> None:
    """A signature in the other layout is refused, also by the right key, and the refusal names the header that is
    wanted. [S9]"""
    app, body = Webhooks(engine), b'{"order": 7}'
    now = engine.clock.now() / 1_000_000
    key = base64.b64decode(SECRET.removeprefix("whsec_"))
    standard = signed_headers(SECRET, "msg_1", body, now_seconds=now)
    for path, wanted, headers in (
        ("/hooks/signed", "webhook-signature", github_headers(SECRET.encode(), body) | github_headers(key, body)),
        ("/hooks/github", "x-hub-signature-256", standard),
    ):
        refused = await post(app, path, body, headers)
        assert (401, True) == (refused.status, f"it has no {wanted}" in refused.data["detail"])
    # Both at once: the one that the trigger names is looked at.
    forged = standard | {"x-hub-signature-256": "sha256=" + "0" * 64}
    assert 401 == (await post(app, "/hooks/github", body, forged)).status
    assert 202 == (await post(app, "/hooks/signed", body, forged)).status


@pytest.mark.parametrize("path", ["/hooks/signed", "/hooks/github"])
@pytest.mark.parametrize("key", ["a key that is not Base64 at all", SECRET])
async def test_a_recorded_delivery_is_sent_again_in_no_other_shape(
    engine: TestEngine, monkeypatch: pytest.MonkeyPatch, path: str, key: str
) -> None:
    """The MAC of Standard Webhooks is one over `id.time.body`. Sent as a form, that text has what stands in a note of
    the delivery as fields of its own; and as a signature of GitHub it was good for ever. [S9]"""
    monkeypatch.setenv("HOOKED_KEY", key.replace(" ", "-"))
    body = b'{"order": 7, "note": "&order=o-666&kind=paid&"}'
    now = int(engine.clock.now() / 1_000_000)
    recorded = signed_headers(key.replace(" ", "-"), "msg_1", body, now_seconds=now)
    mac = base64.b64decode(recorded["webhook-signature"].removeprefix("v1,")).hex()
    whole = f"msg_1.{now}.".encode() + body
    for kind in ("application/x-www-form-urlencoded", "application/json", "text/plain", ""):
        forged = {"x-hub-signature-256": f"sha256={mac}", "content-type": kind}
        for headers in (forged, recorded | forged):
            for sent in (whole, body) if path == "/hooks/github" else (whole,):
                assert (await post(Webhooks(engine), path, sent, headers)).status in (400, 401, 415), kind
    assert [] == await engine.list()


@pytest.mark.parametrize("path", ["/hooks/signed", "/hooks/github"])
async def test_a_signed_form_is_refused(engine: TestEngine, path: str) -> None:
    """A signed form is refused, because any text is a form of some fields. [S9]"""
    body, form = b"order=7", {"content-type": "Application/X-WWW-Form-Urlencoded; charset=utf-8"}
    now = engine.clock.now() / 1_000_000
    signed = signed_headers(SECRET, "msg_1", body, now_seconds=now) | github_headers(SECRET.encode(), body)
    refused = await post(Webhooks(engine), path, body, signed | form)
    assert (415, True) == (refused.status, "application/json" in refused.data["detail"])


async def test_a_webhook_without_its_secret_is_closed(engine: TestEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty key would let everybody sign. (S9) [S9 S43]"""
    now = int(engine.clock.now() / 1_000_000)
    forged = base64.b64encode(hmac.digest(b"", b"msg_1.%d.{}" % now, "sha256")).decode()
    signed = {"webhook-id": "msg_1", "webhook-timestamp": str(now), "webhook-signature": f"v1,{forged}"}
    for value in ("", "  ", "      ", "whsec_", "whsec_ whsec_"):
        monkeypatch.setenv("HOOKED_KEY", value)
        refused = await post(Webhooks(engine), "/hooks/signed", b"{}", signed)
        assert 503 == refused.status
        assert "HOOKED_KEY" not in refused.data["detail"]
    assert "HOOKED_KEY" in os.environ
