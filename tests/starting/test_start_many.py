"""Starting many runs at once: one commit, an answer for each, and nothing at all if one of them cannot work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

import outlive
from outlive._kernel.client import start_many
from outlive._kernel.client.definitions import Describer
from outlive._kernel.define.middleware import Next
from outlive._kernel.store.change import Change
from outlive.errors import ArgumentTypeError, ConflictError, InvalidArgumentError, OutliveError, WrongArgumentsError
from outlive.errors.program import UnknownWorkflowError
from outlive.errors.run import QuotaExceededError, StartsRefusedError
from outlive.events import RunCreated
from outlive.testing import TestEngine
from tests.engine.inside import journal_of, store_of
from tests.engine.support import Place, in_time, note, registry_of, stage

pytestmark = pytest.mark.any_store
mails = outlive.Queue("many.mails", concurrency=5, priorities=True)


@outlive.workflow
async def many_started(name: str, *, times: int = 1) -> str:
    return "".join([await note(name) for _ in range(times)])


@outlive.workflow
async def many_waiting(name: str) -> str:
    return f"{name} {await outlive.wait_for_signal('go', str)}"


@outlive.workflow(queue=mails)
async def many_queued(name: str) -> str:
    return name


async def described(engine: outlive.Engine, *workflows: Any) -> None:
    """Let the store know these workflows, as a worker would."""
    await Describer(store_of(engine), registry_of(*workflows)).describe()


async def headers_of(engine: outlive.Engine, run_id: str) -> dict[str, str]:
    """The headers that a run was started with."""
    created = (await journal_of(engine, run_id))[0]
    assert isinstance(created, RunCreated)
    return created.headers


async def test_each_start_is_a_run_of_its_own(engine: outlive.Engine) -> None:
    """A workflow with its arguments, bound or not, or its name: each is a run, and the handles come in order."""
    await described(engine, many_started)
    runs = await engine.start_many(
        [
            (many_started, "a"),
            many_started.bind("b", times=2),
            ("many_started", {"name": "c"}),
            {"start": (many_started, "d"), "id": "many-d"},
        ]
    )

    assert [await in_time(run.result()) for run in runs] == ["a", "bb", "c", "d"]
    assert runs[3].id == "many-d"
    assert len({run.id for run in runs}) == 4


async def test_all_runs_are_created_in_one_commit(engine: outlive.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred starts are one call of `Store.commit` with a hundred changes."""
    store, sizes = store_of(engine), list[int]()
    commit = store.commit

    async def counted(changes: Sequence[Change]) -> Any:
        sizes.append(sum(1 for change in changes if change.journal == 0))
        return await commit(changes)

    monkeypatch.setattr(store, "commit", counted)
    runs = await engine.start_many([(many_waiting, str(number)) for number in range(100)])

    assert max(sizes) == 100
    assert await engine.count(workflow="many_waiting") == len(runs) == 100


async def test_options_are_for_all_unless_a_start_has_its_own(engine: outlive.Engine) -> None:
    """An option beside the starts counts for each start that does not say otherwise."""
    first, second = await engine.start_many(
        [(many_queued, "a"), {"start": (many_queued, "b"), "key": "ann", "tags": {"own": "1"}}],
        key="bob",
        tags={"all": "1"},
        headers={"who": "all"},
        priority=3,
        delay=60,
    )

    found = [await first.info(), await second.info()]
    assert [(it.queue, it.queue_key, it.tags) for it in found] == [
        ("many.mails", "bob", {"all": "1"}),
        ("many.mails", "ann", {"own": "1"}),
    ]
    assert [await headers_of(engine, run.id) for run in (first, second)] == [{"who": "all"}] * 2
    assert {it.status for it in found} == {"pending"}


async def test_no_starts_are_no_runs(engine: outlive.Engine) -> None:
    """An empty list asks the store for nothing."""
    assert await engine.start_many([]) == []


MISTAKES: dict[str, tuple[Any, dict[str, Any], type[OutliveError], str]] = {
    "arguments": ((many_started,), {}, WrongArgumentsError, r"starts\[1\]: many_started"),
    "a function": ((len, "a"), {}, ArgumentTypeError, r"starts\[1\]\.workflow="),
    "not a call": (7, {}, ArgumentTypeError, r"starts\[1\]\.start=7"),
    "a name": (("nothing_like_it", {}), {}, UnknownWorkflowError, r"starts\[1\]: no worker"),
    "four of a name": (("many_started", {}, 1, 2), {}, ArgumentTypeError, r"starts\[1\]\.start="),
    "a timeout": ((many_started, "b"), {"timeout": -1}, InvalidArgumentError, r"starts\[1\]\.timeout=-1"),
    "an option": ((many_started, "b"), {"time": 1}, ArgumentTypeError, r"starts\[1\]\.time=1"),
    "a connection": ((many_started, "b"), {"connection": 1}, InvalidArgumentError, r"starts\[1\]\.connection=1"),
    "a key": ((many_started, "b"), {"key": "x"}, InvalidArgumentError, r"starts\[1\]\.key='x'"),
    "an id": ((many_started, "b"), {"id": ""}, OutliveError, r"starts\[1\]"),
    "the id of another": ((many_started, "b"), {"id": "many-0"}, InvalidArgumentError, r"starts\[1\]\.id='many-0'"),
    "a conflict": ((many_started, "b"), {"on_conflict": "x"}, InvalidArgumentError, r"starts\[1\]\.on_conflict='x'"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
async def test_one_mistake_starts_nothing_and_says_where(engine: outlive.Engine, mistake: str) -> None:
    """The error names the place of the start that cannot work, and no run of the others is there."""
    call, options, kind, text = MISTAKES[mistake]
    starts: list[Any] = [{"start": (many_started, "a"), "id": "many-0"}, {"start": call, **options}]

    with pytest.raises(kind, match=text):
        await engine.start_many(starts)
    assert await engine.count() == 0


async def test_the_number_of_starts_has_a_limit(engine: outlive.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than that are refused before one of them is looked at, and so are arguments that are too large together."""
    with pytest.raises(InvalidArgumentError, match="at most 1,000 runs"):
        await engine.start_many((many_started, "a") for _ in range(start_many.STARTS_MAX + 1))
    monkeypatch.setattr(start_many, "BYTES_MAX", 100)
    with pytest.raises(InvalidArgumentError, match=r"starts\[1\]\.start=.*100 bytes together"):
        await engine.start_many([(many_started, "a" * 60)] * 2)
    with pytest.raises(InvalidArgumentError, match="each run has an id of its own"):
        await engine.start_many([(many_started, "a")], id="many-0")

    assert await engine.count() == 0


async def test_a_list_that_is_sent_again_gives_the_same_runs(engine: outlive.Engine) -> None:
    """`attach` gives the runs that are there, also when some of the ids are new."""
    starts: list[Any] = [{"start": (many_started, name), "id": f"many-{name}"} for name in "abc"]
    await engine.start_many(starts[:2])

    runs = await engine.start_many(starts)

    assert [await in_time(run.result()) for run in runs] == ["a", "b", "c"]
    assert await engine.count(workflow="many_started") == 3
    assert sorted(stage.calls) == ["a", "b", "c"]


async def test_ids_that_are_taken_are_refused_one_by_one(engine: outlive.Engine) -> None:
    """`reject` refuses a taken id and starts the others; the error has the ids of all, and which are refused."""
    await engine.start(many_waiting, "a", id="many-a")
    await engine.start(many_started, "b", id="many-b")

    with pytest.raises(StartsRefusedError, match="2 of 4 runs were not started, the other 2 were") as caught:
        await engine.start_many(
            [
                {"start": (many_waiting, "new"), "id": "many-a", "on_conflict": "reject"},
                {"start": (many_waiting, "new"), "id": "many-b"},
                {"start": (many_started, "c"), "id": "many-c", "on_conflict": "reject"},
                {"start": (many_waiting, "again"), "id": "many-a2"},
            ]
        )

    assert isinstance(caught.value, ConflictError)
    assert caught.value.ids == ("many-a", "many-b", "many-c", "many-a2")
    assert {at: it.code for at, it in caught.value.refused.items()} == {0: "run_exists", 1: "run_exists"}
    assert await in_time(engine.get("many-c").result()) == "c"
    assert await engine.get("many-a2").status() in ("pending", "running", "waiting")


async def test_a_taken_id_may_be_replaced(engine: outlive.Engine) -> None:
    """`replace` cancels the open run, and `attach_open` starts another run after the end, as for `start`."""
    await engine.start(many_waiting, "a", id="many-a")
    await in_time((await engine.start(many_started, "b", id="many-b")).result())

    first, second = await engine.start_many(
        [
            {"start": (many_started, "new a"), "id": "many-a", "on_conflict": "replace"},
            {"start": (many_started, "new b"), "id": "many-b", "on_conflict": "attach_open"},
        ]
    )

    assert [await in_time(run.result()) for run in (first, second)] == ["new a", "new b"]
    assert await engine.get("many-a~old1").status() == "cancelled"
    assert await engine.get("many-b~old1").status() == "succeeded"


class Labels(outlive.middleware.Middleware):
    """Gives each start a header, and refuses what it is to refuse."""

    async def on_start(self, start: outlive.middleware.StartCall, call_next: Next) -> Any:
        if start.args == ("refused",):
            raise InvalidArgumentError("labels", "name", "refused", "not here")
        if start.args == ("forgotten",):
            return start.id
        start.headers["label"] = str(start.args[0])
        try:
            return await call_next()
        finally:
            stage.call(f"started {start.args[0]}")


async def test_middleware_is_around_each_start(place: Place) -> None:
    """It gives each its headers, and goes on when the run is there."""
    async with place.engine(middleware=[Labels()]) as engine:
        runs = await engine.start_many([(many_waiting, "a"), (many_waiting, "b")])

        assert [await headers_of(engine, run.id) for run in runs] == [{"label": "a"}, {"label": "b"}]
        assert sorted(stage.calls) == ["started a", "started b"]


@pytest.mark.parametrize("name", ["refused", "forgotten"])
async def test_middleware_that_refuses_one_start_refuses_all(place: Place, name: str) -> None:
    """Nothing is started, and the middleware of the others does not hear of a start."""
    async with place.engine(middleware=[Labels()]) as engine:
        with pytest.raises(OutliveError, match=r"starts\[1\]" if name == "refused" else "call_next"):
            await engine.start_many([(many_waiting, "a"), (many_waiting, name)])

        assert await engine.count() == 0


async def test_middleware_gets_the_error_of_an_id_that_is_taken(place: Place) -> None:
    """The middleware of a start that is refused gets its error; that of the others ends as always."""
    heard: dict[str, str] = {}

    class Hearing(outlive.middleware.Middleware):
        async def on_start(self, start: outlive.middleware.StartCall, call_next: Next) -> Any:
            try:
                return await call_next()
            except OutliveError as error:
                heard[start.id] = error.code
                raise

    async with place.engine(middleware=[Hearing()]) as engine:
        await engine.start(many_waiting, "a", id="many-a")
        with pytest.raises(StartsRefusedError):
            await engine.start_many(
                [{"start": (many_waiting, each), "id": f"many-{each}"} for each in "ab"], on_conflict="reject"
            )

        assert heard == {"many-a": "run_exists"}
        assert await engine.get("many-b").status() in ("pending", "running", "waiting")


async def test_the_quota_is_asked_for_all_of_them_at_once() -> None:
    """More starts than the quota leaves room for start nothing; as many as it leaves room for are started."""
    async with TestEngine(namespace="many") as engine:
        await engine.quotas.set(open_runs=3)
        with pytest.raises(QuotaExceededError):
            await engine.start_many([(many_waiting, str(number)) for number in range(4)])
        assert await engine.count() == 0

        await engine.start_many([(many_waiting, str(number)) for number in range(3)])
        assert await engine.count() == 3


async def test_each_start_is_in_the_audit_log(engine: outlive.Engine) -> None:
    """Under the name of the person who acts, with the id of its run."""
    with engine.audit.acting("ann"):
        await engine.start_many([{"start": (many_started, name), "id": f"many-{name}"} for name in "ab"])

    entries = await engine.audit.list(limit=10)
    assert {(it.actor, it.verb, it.target) for it in entries} == {
        ("ann", "start", "many-a"),
        ("ann", "start", "many-b"),
    }


async def test_a_bound_principal_gives_its_tags_to_all(engine: outlive.Engine) -> None:
    """A start with the tag of another tenant starts nothing, wherever it stands."""
    with engine.audit.acting("ann", tags={"tenant": "a"}):
        runs = await engine.start_many([(many_started, "a"), (many_started, "b")])
        with pytest.raises(InvalidArgumentError, match=r"starts\[1\]\.tags"):
            await engine.start_many([(many_started, "a"), {"start": (many_started, "b"), "tags": {"tenant": "b"}}])

    assert [dict((await run.info()).tags) for run in runs] == [{"tenant": "a"}] * 2
    assert await engine.count(workflow="many_started") == 2


def test_sync_code_has_it_too(tmp_path: Any) -> None:
    """`engine.sync.start_many` gives handles without await."""
    with outlive.Engine(f"sqlite:{tmp_path / 'runs.db'}").sync as engine:
        runs = engine.start_many([(many_started, "a"), (many_started, "b")])

        assert [run.result(timeout=30) for run in runs] == ["a", "b"]
