"""Where secrets of flows may go: the settings of the operator count, whatever a document, a start or a server says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import outlive
from outlive import flow
from outlive._features.events.delivering import deliver
from outlive._features.flows.flow import register_flow
from outlive._features.flows.outside.addresses import fixed_vars
from outlive._features.flows.outside.allowed_hosts import parse_url
from outlive._features.flows.outside.grants import place_of
from outlive._features.flows.outside.settings import read
from outlive._kernel.define.registry import Registry
from outlive._kernel.model.trigger import SentEvent
from outlive.errors import RunFailedError
from outlive.errors.outside import SettingsError, UnreachableError
from outlive.http import Api
from outlive.testing import TestEngine
from tests.engine.inside import store_of
from tests.flow.tools import respond
from tests.flow.web import Asked, Web, answer, serving
from tests.http.caller import Caller

VALUE = "tok-of-the-bank-77"
LOCAL = {"allow_networks": ["127.0.0.0/8"]}
TOKEN = "${{ vars.bounds_token }}"
FORGED = "\ufdd0secret:bounds_token:\ufdd1"


@pytest.fixture(autouse=True)
def _value(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("OUTLIVE_SECRET_BOUNDS_TOKEN", VALUE)
    with flow.using({"http": LOCAL}):
        yield


@outlive.step
async def bounds_sign(token: str) -> int:
    """A step of a user that needs the value."""
    return len(flow.reveal(token))


def one_step(use: str, given: Any, *, name: str = "bounds", **more: Any) -> flow.FlowWorkflow:
    """A flow of one step that may name the secret."""
    variables = {"bounds_token": {"secret": True}, "api": {"type": "string", "default": "-", "fixed": False}}
    document = {
        "name": name,
        "input": {"text": {"default": ""}},
        "vars": variables,
        "steps": {"do": {"use": use, "with": given, **more}},
        "output": "${{ steps.do }}",
    }
    return flow.parse(json.dumps(document))


async def failure_of(made: flow.FlowWorkflow, **given: Any) -> str:
    """What a run fails with; "" if it does not."""
    async with TestEngine() as engine:
        run = await engine.start(made.bind(**given))
        try:
            await run.result()
        except RunFailedError as error:
            return str(error.failure.message)
        return ""


def bound(**grant: Any) -> Any:
    """Settings that say what the secret may be used for."""
    return flow.using({"http": LOCAL, "grants": {"bounds_token": grant}})


def has_value(web: Web) -> bool:
    """Whether a server was sent the value in some way."""
    return any(VALUE in f"{asked.path} {asked.headers} {asked.body!r}" for asked in web.asked)


# -- Requests ---------------------------------------------------------------------------------------------------------


async def test_a_secret_goes_to_the_servers_of_the_settings_only() -> None:
    """Whatever the address was rendered from: it is looked at when the request is sent. [S30]"""
    charge = one_step("http", {"url": "${{ vars.api }}/charges", "bearer": TOKEN})
    async with serving(lambda _: answer(200)) as bank, serving(lambda _: answer(200)) as thief:
        with bound(hosts=[f"http://127.0.0.1:{bank.port}"]):
            assert await failure_of(charge, vars={"api": bank.url("")}) == ""
            refused = await failure_of(charge, vars={"api": thief.url("")})
            encrypted = await failure_of(charge, vars={"api": bank.url("", scheme="https")})

    assert f"secret 'bounds_token' may not be sent to {thief.url('')}" in refused
    assert "may not be sent to https://127.0.0.1" in encrypted
    assert (has_value(bank), thief.asked) == (True, [])


@pytest.mark.parametrize("header", ["Authorization", "Accept", "User-Agent"])
async def test_a_redirect_takes_no_secret_elsewhere(header: str) -> None:
    """Some headers go along to another origin, and an answer may say the value itself. [S30]"""
    made = one_step("http", {"url": "${{ vars.api }}", "headers": {header: TOKEN}})

    async with serving(lambda _: answer(200)) as thief:

        def lead(asked: Asked) -> bytes:
            return answer(302, Location=f"{thief.url('/')}?is={asked.headers[header.lower()]}")

        async with serving(lead) as bank:
            with bound(hosts=[f"http://127.0.0.1:{bank.port}"]):
                refused = await failure_of(made, vars={"api": bank.url()})

    assert "may not be sent to" in refused
    assert (has_value(bank), thief.asked) == (True, [])


async def test_a_secret_of_an_endpoint_goes_there_and_nowhere_else() -> None:
    """A document may name it, and cannot send it to a server of its own, though no grant says anything. [S30]"""
    completion = {"choices": [{"message": {"role": "assistant", "content": "fine"}, "finish_reason": "stop"}]}
    async with serving(lambda _: answer(200, json.dumps(completion))) as model, serving(lambda _: answer(200)) as thief:
        endpoint = {"url": model.url("/v1"), "key": "bounds_token", "model": "m"}
        with flow.using({"http": LOCAL, "llm": {"default": endpoint}}):
            own = {"url": thief.url("/v1"), "key": TOKEN, "model": "m", "prompt": "hi"}
            assert "may not be sent to" in await failure_of(one_step("llm", own))
            request = {"url": thief.url(), "bearer": TOKEN}
            assert "may not be sent to" in await failure_of(one_step("http", request))
            assert "may not be given to bounds_sign" in await failure_of(one_step("bounds_sign", {"token": TOKEN}))
            assert await failure_of(one_step("llm", {"prompt": "hi"})) == ""

    assert (model.asked[0].headers["authorization"], thief.asked) == (f"Bearer {VALUE}", [])


async def test_data_does_not_name_the_secret_of_an_endpoint() -> None:
    """A prompt with it would let the model say it, letter by letter; arguments of a tool likewise. [S30]"""
    completion = {"choices": [{"message": {"role": "assistant", "content": "fine"}, "finish_reason": "stop"}]}

    def handle(asked: Asked) -> bytes:
        body = json.loads(asked.body)
        if asked.path != "/mcp":
            return answer(200, json.dumps(completion))
        reply = respond(body, is_modern=False)
        return answer(202) if reply is None else answer(200, json.dumps(reply), Content_Type="application/json")

    async with serving(handle) as web:
        table = {
            "llm": {"default": {"url": web.url("/v1"), "key": "bounds_token", "model": "m"}},
            "mcp": {"calc": {"url": web.url("/mcp"), "token": "bounds_token"}},
        }
        with flow.using(table):
            for use, given in (
                ("llm", {"prompt": "${{ input.text }}"}),
                ("mcp", {"server": "calc", "tool": "add", "arguments": {"numbers": [1], "note": "${{ input.text }}"}}),
            ):
                refused = await failure_of(one_step(use, given), input={"text": f"spell {FORGED}"})
                assert "is not named in the `with` of this step" in refused

    assert not any(VALUE.encode() in asked.body for asked in web.asked)


async def test_a_delivery_is_signed_for_the_servers_of_the_settings_only() -> None:
    """A person who may add sinks cannot have signatures by the secret of another sink. [S30]"""
    event = SentEvent(type="a", id="1", source="", data=None, time="2026-01-01T00:00:00Z")
    async with serving(lambda _: answer(204)) as crm, serving(lambda _: answer(204)) as thief, TestEngine() as engine:
        await engine.events.add_sink("crm", crm.url(), secret="bounds_token")
        await engine.events.add_sink("thief", thief.url(), secret="bounds_token")
        with bound(hosts=[f"http://127.0.0.1:{crm.port}"]):
            assert await deliver(store_of(engine), "crm", event) == 204
            with pytest.raises(UnreachableError, match="'bounds_token' may not be sent to"):
                await deliver(store_of(engine), "thief", event)

    assert ("webhook-signature" in crm.asked[0].headers, thief.asked) == (True, [])


async def test_a_sink_that_comes_with_a_key_names_a_secret_for_listed_servers() -> None:
    """A person who may set sinks could else have any secret of the workers sign for any server. [S30]"""
    sink = {"url": "https://crm.example:8443/hook", "secret": "bounds_token"}

    async with TestEngine(worker=False) as engine:
        key = await engine.keys.create("eve", scope="admin")
        eve, local = Caller(Api(engine, auth="keys"), key=key.secret), Caller(Api(engine))

        async def statuses(**more: str) -> list[int]:
            return [(await each.send("PUT", "/api/v1/sinks/crm", sink | more)).status for each in (eve, local)]

        assert await statuses() == [403, 200]
        with bound(hosts=["crm.example:8443"]):
            assert await statuses() == [200, 200]
            assert await statuses(url="https://thief.example:8443/hook") == [403, 200]
            assert await statuses(secret="another") == [403, 200]
        refused = await eve.send("PUT", "/api/v1/sinks/crm", sink | {"secret": f"whsec_{VALUE}"})
        assert (refused.code, VALUE.encode() in refused.body) == ("forbidden", False)
        assert (await eve.send("PUT", "/api/v1/sinks/crm", {"url": "https://crm.example"})).status == 200


# -- Steps and programs -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("use", "given", "listed"),
    [
        ("bounds_sign", {"token": TOKEN}, "bounds_sign"),
        ("shell", {"command": "say", "input": TOKEN}, "shell:say"),
        ("docker", {"image": "say", "input": TOKEN}, "docker:say"),
        ("mcp", {"server": "say", "tool": "add", "arguments": {"key": TOKEN}}, "mcp:say"),
    ],
)
async def test_a_bound_secret_is_given_to_what_the_settings_list(use: str, given: Any, listed: str) -> None:
    """A program, an image, the program of a tool, and a step of the user's own can send it anywhere. [S30]"""
    table = {
        "http": LOCAL,
        "shell": {"say": {"argv": ["/bin/true"]}},
        "docker": {"say": {"image": "x"}},
        "mcp": {"say": {"argv": ["/bin/true"]}},
    }
    for grant in ({"hosts": ["api.example.com"]}, {"uses": ["another"]}):
        with flow.using({**table, "grants": {"bounds_token": grant}}):
            assert f"secret 'bounds_token' may not be given to {listed}:" in await failure_of(one_step(use, given))
    with flow.using({**table, "grants": {"bounds_token": {"uses": [listed]}}}):
        assert "may not be" not in await failure_of(one_step(use, given))
        assert "may not be sent to" in await failure_of(
            one_step("http", {"url": "http://127.0.0.1:9", "bearer": TOKEN})
        )


# -- Flows ------------------------------------------------------------------------------------------------------------


async def test_a_flow_uses_the_secrets_that_are_listed_for_it() -> None:
    """A worker refuses it to others, whichever way their documents came into the store. [S30]"""
    with bound(flows=["bounds.shop", "bounds.billing.*"]):
        for name, is_listed in (("bounds.shop", True), ("bounds.billing.eu", True), ("bounds.other", False)):
            refused = await failure_of(one_step("bounds_sign", {"token": TOKEN}, name=name))
            assert ("may not be used by flow bounds.other" in refused) is not is_listed


async def test_a_document_that_comes_with_a_key_names_listed_secrets() -> None:
    """A document that comes with a key may use only the secrets and variables of the environment that are listed for
    its flow. [S30]"""

    def document(variable: str, **said: Any) -> dict[str, str]:
        plain = {"name": "bounds.new", "vars": {variable: said}, "steps": {"a": {"use": "noop"}}, "output": 1}
        return {"document": json.dumps(plain)}

    async with TestEngine(worker=False) as engine:
        key = await engine.keys.create("eve", scope="admin")
        eve = Caller(Api(engine, auth="keys"), key=key.secret)

        async def codes(variable: str, **said: Any) -> list[str]:
            checked = (await eve.post("/api/v1/flows/check", document(variable, **said))).data
            refused = [it["code"] for it in checked["problems"] if it["code"].startswith("unlisted")]
            status = (await eve.post("/api/v1/flows", document(variable, **said))).status
            assert status == (422 if refused else 200)
            return refused

        assert await codes("bounds_token", secret=True) == ["unlisted-secret"]
        with bound(flows=["bounds.other"]):
            assert await codes("bounds_token", secret=True) == ["unlisted-secret"]
        with bound(flows=["bounds.*"], env="SHOP_TOKEN"):
            assert await codes("bounds_token", secret=True) == []
            assert await codes("bounds_token", secret=True, env="SHOP_TOKEN") == []
            assert await codes("BOUNDS_TOKEN", secret=True) == []
            assert await codes("own", secret=True) == ["unlisted-secret"]
        grants = {"bounds_token": {"flows": ["bounds.*"], "env": "SHOP_TOKEN"}, "own": {"flows": ["bounds.*"]}}
        with flow.using({"environment": ["*"], "grants": grants}):
            assert await codes("own", secret=True, env="SHOP_TOKEN") == ["unlisted-env"]
            assert await codes("plain", type="string", env="SHOP_TOKEN") == ["unlisted-env"]
            assert await codes("plain", type="string", env="OUTLIVE_SECRET_ELSE") == ["unlisted-env"]
            assert await codes("plain", type="string", env="SHOP_NAME") == []


@pytest.mark.parametrize(
    ("name", "env", "complaint"),
    [
        ("innocent", "OUTLIVE_SECRET_BOUNDS_TOKEN", "cannot have its value in OUTLIVE_SECRET_BOUNDS_TOKEN"),
        ("Bounds_Token", None, "may not be given to bounds_sign"),
        ("named", "SHOP_ELSE", "has its value in SHOP_TOKEN by the settings"),
        ("innocent", "SHOP_TOKEN", "cannot have its value in SHOP_TOKEN, which is that of the secret named"),
    ],
)
async def test_a_secret_is_bound_by_any_name(name: str, env: str | None, complaint: str) -> None:
    """A document says in which environment variable a secret is, and so could call it something else. [S30]"""
    variable = {"secret": True} | ({} if env is None else {"env": env})
    plain = {
        "name": "bounds_renamed",
        "vars": {name: variable},
        "steps": {"do": {"use": "bounds_sign", "with": {"token": f"${{{{ vars.{name} }}}}"}}},
        "output": "${{ steps.do }}",
    }
    grants = {"bounds_token": {"hosts": ["api.example.com"]}, "named": {"env": "SHOP_TOKEN", "uses": ["bounds_sign"]}}
    with flow.using({"grants": grants}):
        assert complaint in await failure_of(flow.parse(json.dumps(plain)))


# -- Variables that decide an address ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "steps",
    [
        {"a": {"use": "http", "with": {"url": "${{ vars.api }}/x", "bearer": TOKEN}}},
        {"a": {"use": "http", "with": {"url": "https://shop${{ vars.api }}", "bearer": TOKEN}}},
        {"a": {"use": "llm", "with": {"endpoint": "${{ vars.api }}", "prompt": TOKEN}}},
        {"a": {"use": "mcp", "with": {"server": "s", "tool": "${{ vars.api }}", "arguments": {"k": TOKEN}}}},
        {"a": {"use": "shell", "with": {"command": "curl", "arguments": ["${{ vars.api }}"], "input": TOKEN}}},
        {"a": {"use": "bounds_post", "with": {"target": "${{ vars.api }}", "token": TOKEN}}},
        {
            "a": {"use": "noop", "with": "${{ vars.api }}"},
            "b": {"use": "http", "with": {"url": "${{ steps.a }}", "bearer": TOKEN}},
        },
        {
            "a": {"use": "noop", "with": 1, "on_error": {"use_default": "${{ vars.api }}"}},
            "b": {"use": "http", "with": {"url": "${{ steps.a }}", "bearer": TOKEN}},
        },
        {
            "a": {
                "use": "map",
                "with": {
                    "items": ["${{ vars.api }}"],
                    "use": "http",
                    "with": {"url": "${{ item }}", "bearer": TOKEN},
                },
            }
        },
        {
            "a": {
                "use": "map",
                "with": {
                    "items": [1],
                    "do": {
                        "steps": {
                            "one": {"use": "noop", "with": "${{ vars.api }}"},
                            "two": {"use": "http", "with": {"url": "${{ steps.one }}", "bearer": TOKEN}},
                        }
                    },
                },
            }
        },
        {
            "a": {
                "use": "http",
                "with": {"url": "https://api.example.com", "body": "${{ vars.api }}"},
                "undo": {"use": "http", "with": {"url": "${{ result.body.link }}", "bearer": TOKEN}},
            }
        },
    ],
)
def test_a_variable_that_decides_where_a_secret_goes_is_fixed(steps: dict[str, Any]) -> None:
    """In the address, as an item, by a result or a default; of a step of the user's own in any argument. [S30]"""
    variables: dict[str, Any] = {"bounds_token": {"secret": True}, "api": {"default": "-"}, "other": {"default": "-"}}
    last = {"use": "http", "with": {"url": "https://api.example.com/${{ vars.other }}", "bearer": TOKEN}}
    plain = {"name": "bounds_fixed", "vars": variables, "steps": {**steps, "z": last}, "output": 1}

    assert fixed_vars(flow.parse(json.dumps(plain)).document) == {"api"}
    variables["api"]["fixed"] = False
    assert fixed_vars(flow.parse(json.dumps(plain)).document) == set()


def by_start(name: str, url: str, **more: Any) -> dict[str, Any]:
    """A document in which a request with the secret goes to this URL."""
    return {
        "name": name,
        "input": {"host": {"type": "string"}},
        "vars": {"bounds_token": {"secret": True}, "hook": {"secret": True, "env": "BOUNDS_HOOK"}},
        "steps": {"charge": {"use": "http", "with": {"url": url, "bearer": TOKEN}, "retry": {"attempts": 1}}},
        "output": "${{ steps.charge.status }}",
        **more,
    }


@pytest.mark.parametrize("is_bound", [True, False])
@pytest.mark.parametrize("door", ["start", "event", "webhook"])
async def test_the_start_of_a_run_takes_a_secret_to_servers_of_the_settings_only(
    door: str, monkeypatch: pytest.MonkeyPatch, *, is_bound: bool
) -> None:
    """The input is what an operator, an event or a webhook says: a request that goes there takes no secret that is
    bound to no server, and a bound one to its servers. [S30]"""
    monkeypatch.setenv("BOUNDS_HOOK", VALUE)
    name, path = f"bounds_by_{door}_{is_bound}", f"/bounds/{door}/{is_bound}"
    triggers = [{"event": name}, {"webhook": path, "token": "hook"}]
    plain = by_start(name, "${{ input.host }}/x", triggers=triggers)
    async with serving(lambda _: answer(200)) as bank, serving(lambda _: answer(200)) as thief, TestEngine() as engine:
        with bound(**({"hosts": [f"http://127.0.0.1:{bank.port}"]} if is_bound else {})):
            await engine.flows.apply(json.dumps(plain), by="ann")
            await engine.settle()
            key = await engine.keys.create("eve", scope="operator")
            eve, seen = Caller(Api(engine, auth="keys"), key=key.secret), set[str]()

            async def failure(host: str) -> str:
                given = {"host": host}
                if door == "start":
                    sent = await eve.post(f"/api/v1/flows/{name}/runs", {"input": given})
                elif door == "event":
                    sent = await eve.post("/api/v1/events", {"type": name, "data": given})
                else:
                    sent = await Caller(Api(engine, auth="keys"), key=VALUE).post(f"/webhooks{path}", given)
                assert sent.status < 300, sent.body
                await engine.settle()
                (run,) = [it for it in await engine.list(workflow=name) if it.id not in seen]
                seen.add(run.id)
                try:
                    await engine.get(run.id).result()
                except RunFailedError as error:
                    return str(error.failure.message)
                return ""

            refused = await failure(thief.url(""))
            taken = await failure(bank.url(""))

    unbound = "may not be sent where the start of a run says"
    assert ("may not be sent to" if is_bound else unbound) in refused
    assert (taken == "") is is_bound
    assert is_bound or unbound in taken
    assert (has_value(bank), thief.asked) == (is_bound, [])


async def _codes_of(plain: Any) -> tuple[list[str], list[str]]:
    """The mistakes of a document that comes with a key, and the warnings for a program of this machine."""
    async with TestEngine(worker=False) as engine:
        key = await engine.keys.create("eve", scope="admin")
        sent = {"document": json.dumps(plain)}

        async def problems(caller: Caller, *, is_warning: bool) -> list[str]:
            found = (await caller.post("/api/v1/flows/check", sent)).data["problems"]
            mistakes = [it["code"] for it in found if not it["is_warning"]]
            assert ((await caller.post("/api/v1/flows", sent)).status == 200) is not bool(mistakes)
            return [it["code"] for it in found if it["is_warning"]] if is_warning else mistakes

        eve, local = Caller(Api(engine, auth="keys"), key=key.secret), Caller(Api(engine))
        return await problems(eve, is_warning=False), await problems(local, is_warning=True)


@pytest.mark.parametrize(
    ("steps", "is_by_start"),
    [
        ({}, True),
        ({"charge": {"use": "http", "with": {"url": "${{ run.id }}/x", "bearer": TOKEN}}}, True),
        ({"charge": {"use": "http", "with": {"url": "https://a.example${{ input.host }}", "bearer": TOKEN}}}, True),
        ({"charge": {"use": "http", "with": {"url": "https://a.example/${{ input.host }}", "bearer": TOKEN}}}, False),
        ({"charge": {"use": "http", "with": {"url": "${{ input.host }}"}}}, False),
        (
            {
                "a": {"use": "noop", "with": "${{ input.host }}"},
                "charge": {"use": "http", "with": {"url": "${{ steps.a }}", "bearer": TOKEN}},
            },
            True,
        ),
        (
            {
                "a": {"use": "http", "with": {"url": "https://a.example/${{ input.host }}"}},
                "charge": {"use": "http", "with": {"url": "${{ steps.a.body.link }}", "bearer": TOKEN}},
            },
            False,
        ),
        (
            {
                "a": {
                    "use": "http",
                    "with": {"url": "https://a.example"},
                    "on_error": {"use_default": "${{ input.host }}"},
                },
                "charge": {"use": "http", "with": {"url": "${{ steps.a }}", "bearer": TOKEN}},
            },
            True,
        ),
        (
            {
                "charge": {
                    "use": "map",
                    "with": {
                        "items": "${{ [input.host] }}",
                        "use": "http",
                        "with": {"url": "${{ item }}", "bearer": TOKEN},
                    },
                }
            },
            True,
        ),
        (
            {
                "charge": {
                    "use": "map",
                    "with": {
                        "items": ["https://a.example"],
                        "use": "http",
                        "with": {"url": "${{ item }}", "bearer": TOKEN, "body": "${{ input.host }}"},
                    },
                }
            },
            False,
        ),
    ],
)
async def test_a_check_names_an_address_that_a_start_says(steps: dict[str, Any], *, is_by_start: bool) -> None:
    """A mistake in a document that comes with a key, as its grant has no servers; a warning in another one. [S30]"""
    plain = by_start("bounds.by_start", "${{ input.host }}/x", output=1)
    plain["steps"] |= steps
    own: Any = {"bounds_token": {"flows": ["bounds.*"]}, "hook": {"flows": ["bounds.*"], "env": "BOUNDS_HOOK"}}

    with flow.using({"grants": own}):
        refused, warned = await _codes_of(plain)
    assert refused == (["secret-address"] if is_by_start else [])
    assert ("secret-address" in warned) is is_by_start
    own["bounds_token"]["hosts"] = ["a.example"]
    with flow.using({"grants": own}):
        refused, warned = await _codes_of(plain)
    assert (refused, "secret-address" in warned) == ([], False)


@outlive.step
async def bounds_find(where: str) -> str:
    """Looks up the server of a bank."""
    return where


@pytest.mark.parametrize("is_bound", [True, False])
async def test_no_person_sets_the_result_that_decides_where_a_secret_goes(*, is_bound: bool) -> None:
    """An operator may set results in a fork, and no address of a request with a secret, unless the settings bind the
    secret to servers: then the worker looks when it sends the request. [S30 S33]"""
    steps = {
        "find": {"use": "bounds_find", "with": {"where": "${{ input.text }}"}},
        "name": {"use": "bounds_find", "with": {"where": "ann"}},
        "charge": {"use": "http", "with": {"url": "${{ steps.find }}/${{ steps.name }}", "bearer": TOKEN}},
    }
    variables = {"bounds_token": {"secret": True}}
    plain = {
        "name": f"bounds_found_{is_bound}",
        "vars": variables,
        "steps": steps,
        "output": "${{ steps.charge.status }}",
    }
    made = flow.parse(json.dumps(plain | {"input": {"text": {"default": ""}}}))
    async with serving(lambda _: answer(200)) as bank, serving(lambda _: answer(200)) as thief, TestEngine() as engine:
        with bound(**({"hosts": [f"http://127.0.0.1:{bank.port}"]} if is_bound else {})):
            await (await engine.start(made.bind({"text": bank.url("")}), id="first")).result()
            key = await engine.keys.create("eve", scope="operator")
            eve = Caller(Api(engine, auth="keys"), key=key.secret)

            async def fork(id: str, **results: str) -> Any:
                return await eve.post("/api/v1/runs/first/fork", {"id": id, "set": results})

            stolen = await fork("stolen", find=thief.url(""))
            if is_bound:
                with pytest.raises(RunFailedError, match="may not be sent to"):
                    await engine.get("stolen").result()
            else:
                assert (stolen.status, "decides where a secret goes" in stolen.data["detail"]) == (409, True)
            assert (await fork("renamed", name="eve")).status == 201
            await engine.get("renamed").result()

    assert [asked.path for asked in bank.asked] == ["/ann", "/eve"]
    assert thief.asked == []


@pytest.mark.parametrize("is_forged", [True, False])
async def test_a_run_begins_with_the_address_that_its_worker_has(*, is_forged: bool) -> None:
    """A run takes the fixed variables of its worker; a start that gives another value, even past every check, fails.
    [S30 S33]"""
    variables = {"bounds_token": {"secret": True}, "api": {"type": "string", "default": "http://127.0.0.1:9"}}
    charge = {"use": "http", "with": {"url": "${{ vars.api }}", "bearer": TOKEN}, "retry": {"attempts": 1}}
    name = f"bounds_begun_{is_forged}"
    plain = {"name": name, "vars": variables, "steps": {"charge": charge}, "output": "${{ steps.charge.status }}"}
    made = flow.parse(json.dumps(plain))
    async with serving(lambda _: answer(200)) as bank, serving(lambda _: answer(200)) as thief, TestEngine() as engine:
        with flow.using({"http": LOCAL, "vars": {"api": bank.url()}}):
            given = {"vars": {"api": thief.url()}} if is_forged else {}
            await engine.schedules.set("past", outlive.every(days=1, args=given), made)
            run = await engine.schedules.trigger("past")
            if is_forged:
                with pytest.raises(RunFailedError, match=r"vars\.api is fixed: a start cannot give it"):
                    await run.result()
            else:
                assert await run.result() == 200

    assert (len(bank.asked), thief.asked) == (0 if is_forged else 1, [])


def two_versions(bank: Web) -> tuple[flow.FlowWorkflow, flow.FlowWorkflow]:
    """A document in which a start may say where things go, and a later one that sends a secret there."""
    steps = {"find": {"use": "bounds_find", "with": {"where": "${{ input.text }}"}}}
    plain: dict[str, Any] = {"name": "bounds_later", "input": {"text": {"default": ""}}, "steps": steps}
    first = plain | {"vars": {"api": {"default": bank.url("")}}, "output": "${{ steps.find }}"}
    url = "${{ steps.find == '' ? vars.api : steps.find }}/x"
    charge = {"use": "http", "with": {"url": url, "bearer": TOKEN}}
    later = first | {
        "vars": first["vars"] | {"bounds_token": {"secret": True}},
        "steps": steps | {"charge": charge},
        "output": "${{ steps.charge.status }}",
    }
    both = flow.parse(json.dumps(first)), flow.parse(json.dumps(later))
    for each in both:
        register_flow(each)
    return both


@pytest.mark.parametrize("has_code", [True, False], ids=["worker", "server"])
@pytest.mark.parametrize("edit", ["vars", "result"])
async def test_a_fork_to_another_document_takes_no_address_along(tmp_path: Path, edit: str, *, has_code: bool) -> None:
    """A fork to a later document takes no variable and no set result along that could name where a secret goes.
    [S30 S33]"""
    async with serving(lambda _: answer(200)) as bank, serving(lambda _: answer(200)) as thief:
        first, later = two_versions(bank)
        forks: list[dict[str, Any]] = [{"at": 1, "version": later.version}]
        if edit == "result":
            forks = [{"set": {"find": thief.url("")}}, {"version": later.version}]
        values = {"api": thief.url("") if edit == "vars" else ""}
        url = f"sqlite:{tmp_path / 'runs.db'}"
        async with outlive.Engine(url) as engine, outlive.Engine(url, worker=False, _registry=Registry()) as other:
            with engine.audit.acting("eve", overrides="policies"):
                begun = first.bind({}, vars=values, overrides={"find": {"timeout": 5}})
                await (await engine.start(begun, id="fork-0")).result()
            key = await engine.keys.create("eve", scope="operator")
            eve = Caller(Api(engine if has_code else other, auth="keys"), key=key.secret)
            for number, each in enumerate(forks):
                answered = await eve.post(f"/api/v1/runs/fork-{number}/fork", {"id": f"fork-{number + 1}", **each})
                assert answered.status == 201, answered.body
                await engine.get(f"fork-{number + 1}").result()

    assert thief.asked == []
    assert [asked.path for asked in bank.asked] == ["/x"]


@pytest.mark.parametrize("has_code", [True, False], ids=["worker", "server"])
async def test_an_operator_takes_no_override_of_an_admin_to_another_document(tmp_path: Path, *, has_code: bool) -> None:
    """The admin changed one document, and not the later one. The admin may take it along. [S33]"""
    async with serving(lambda _: answer(200)) as bank:
        first, later = two_versions(bank)
        url = f"sqlite:{tmp_path / 'runs.db'}"
        async with outlive.Engine(url) as engine, outlive.Engine(url, worker=False, _registry=Registry()) as other:
            changes = {"find": {"with": {"where": bank.url("")}}}
            await (await engine.start(first.bind({}, vars={"api": ""}, overrides=changes), id="first")).result()
            eve, ann = [
                Caller(Api(engine if has_code else other, auth="keys"), key=made.secret)
                for made in [await engine.keys.create(scope, scope=scope) for scope in ("operator", "admin")]
            ]
            sent = {"id": "forked", "at": 1, "version": later.version}
            refused = await eve.post("/api/v1/runs/first/fork", sent)
            assert (refused.status, "a start may not change" in refused.data["detail"]) == (422, True)
            assert (await ann.post("/api/v1/runs/first/fork", sent)).status == (201 if has_code else 422)


@pytest.mark.parametrize("use", ["flow", "start"])
async def test_a_flow_gives_another_one_no_variable_that_is_fixed(use: str) -> None:
    """Its start would decide by its own input where the secret of the other goes. [S30]"""
    variables = {"bounds_token": {"secret": True}, "api": {"type": "string", "default": "http://127.0.0.1:9"}}
    charge = {"use": "http", "with": {"url": "${{ vars.api }}", "bearer": TOKEN}, "retry": {"attempts": 1}}
    plain = {"name": "bounds_inner", "vars": variables, "steps": {"charge": charge}, "output": "${{ steps.charge }}"}
    register_flow(flow.parse(json.dumps(plain)))
    async with serving(lambda _: answer(200)) as thief:
        given = {"name": "bounds_inner", "vars": {"api": "${{ input.text }}"}}
        refused = await failure_of(one_step(use, given, name=f"bounds_outer_{use}"), input={"text": thief.url()})

    assert "vars.api is fixed: a start cannot give it" in refused
    assert thief.asked == []


# -- The settings -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "fits", "others"),
    [
        ("api.example.com", "https://api.example.com/x https://API.example.com:443", "http://api.example.com"),
        ("api.example.com", "https://api.example.com.", "https://api.example.com:8443 https://x.api.example.com"),
        ("*.example.com", "https://a.example.com https://a.b.example.com", "https://example.com https://aexample.com"),
        ("box:8443", "https://box:8443", "https://box http://box:8443"),
        ("http://box:8080", "http://box:8080", "https://box:8080 http://box"),
        ("http://[::1]:80", "http://[::1]", "http://[::2] https://[::1]"),
    ],
)
def test_a_server_is_named_with_its_scheme_and_port(pattern: str, fits: str, others: str) -> None:
    """A token without TLS is everyone's on the way, and another port may be another user's."""
    place = place_of(pattern)

    assert all(place.has(parse_url(url)) for url in fits.split())
    assert not any(place.has(parse_url(url)) for url in others.split())


@pytest.mark.parametrize(
    ("table", "complaint"),
    [
        ({"grants": {"a": {"hosts": ["https://x/y"]}}}, r"flows\.grants\.a\.hosts\[0\]: 'https://x/y' is not a server"),
        ({"grants": {"a": {"hosts": ["x*y"]}}}, r"flows\.grants\.a\.hosts\[0\]"),
        ({"grants": {"a": {}, "A": {}}}, r"flows\.grants\.A: it is the same secret as a"),
        (
            {"grants": {"k": {"hosts": ["x"]}}, "llm": {"m": {"url": "https://api.example.com/v1", "key": "k"}}},
            r"flows\.llm\.m: secret 'k' may not be sent to https://api\.example\.com",
        ),
        (
            {"grants": {"k": {"uses": ["x"]}}, "mcp": {"m": {"url": "https://api.example.com/", "token": "k"}}},
            r"flows\.mcp\.m: secret 'k' may not be sent",
        ),
    ],
)
def test_grants_that_cannot_work_are_mistakes_of_the_settings(table: Any, complaint: str) -> None:
    """`outlive config check` finds them."""
    with pytest.raises(SettingsError, match=complaint):
        read(table)
