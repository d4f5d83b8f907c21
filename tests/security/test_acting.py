"""`engine.audit.acting`: what a principal does is in the audit log, whichever verb it uses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from msgspec.structs import replace

import outlive
from outlive._features.security.audit_pruner import AuditPruner
from outlive._kernel.store.audit import AuditRow
from outlive.errors import ConfigurationError, InvalidArgumentError, RunExistsError, RunNotFoundError
from outlive.retention import KeepAudit
from outlive.testing import TestEngine
from outlive.types import AuditCheck
from tests.engine.inside import record_action, store_of
from tests.security.test_audited import give_triggers

MONTH = timedelta(days=30)


@outlive.workflow
async def audited_order(number: int) -> int:
    """Waits for a signal, a decision and a promise."""
    await outlive.wait_for_signal("paid")
    approval = await outlive.wait_for_approval("refund")
    return number if approval.approved else -number


@outlive.step(retry=None)
async def audited_defect() -> None:
    """Fails."""
    raise ValueError("no")


@outlive.workflow
async def audited_failure() -> None:
    """Fails because of its step."""
    await audited_defect()


@pytest.fixture
async def engine() -> AsyncIterator[TestEngine]:
    """An engine on time of its own."""
    async with TestEngine() as engine:
        yield engine


async def said(engine: outlive.Engine) -> list[str]:
    """What the log says, the oldest first."""
    entries = (await engine.audit.list(limit=1_000))[::-1]
    return [" ".join(filter(None, (it.actor, it.verb, it.target, it.reason))) for it in entries]


async def test_code_without_a_principal_is_not_audited(engine: TestEngine) -> None:
    """Nothing is written that was not asked for."""
    run = await engine.start(audited_order, 1, id="quiet")
    await run.cancel()
    await engine.keys.create("ci")

    assert await said(engine) == []


async def test_every_verb_is_one_row(engine: TestEngine) -> None:
    """With who, what, to what, and why. What was done before is not done again, and has no row. [S37]"""
    with engine.audit.acting("ann"):
        run = await engine.start(audited_order, 1, id="run-1")
        for _ in range(2):
            await engine.signal("run-1", "paid", key="once")
        await engine.settle()
        for _ in range(2):
            await engine.approvals.approve("run-1", "refund", by="ann", comment="fine")
        await run.result()
        for number in (2, 3):
            await engine.start(audited_order, number, id=f"run-{number - 1}")
        await engine.settle()
        await engine.pause("run-2", reason="lunch")
        await engine.cancel("run-2", reason="sold out")
        await engine.queues.pause(outlive.Queue("mail"), reason="no mail")
        await engine.pause(workflow="audited_order", reason="night")
        await engine.resume(workflow="audited_order")
        key = (await engine.keys.create("ci")).key
        await engine.keys.revoke(key.id)
        await engine.schedules.set("nightly", outlive.every(days=1), audited_failure)
        await engine.schedules.pause("nightly")
        await engine.schedules.delete("nightly")
        for _ in range(2):
            await engine.events.remove_sink("crm")
            await engine.events.forget("audited_order")
        await engine.events.add_sink("crm", "https://crm.example/hook")
        await engine.events.remove_sink("crm")
        await engine.quotas.set(open_runs=5)
        await engine.quotas.set()
        await engine.export("run-2")

    assert await said(engine) == [
        "ann start run-1",
        "ann signal run-1 paid",
        "ann approve run-1 refund: fine",
        "ann start run-2",
        "ann pause run-2 lunch",
        "ann cancel run-2 sold out",
        "ann queue.pause mail no mail",
        "ann pause audited_order night",
        "ann resume audited_order",
        f"ann key.create {key.id} ci, viewer",
        f"ann key.revoke {key.id}",
        "ann schedule.create nightly",
        "ann schedule.change nightly",
        "ann schedule.delete nightly",
        "ann sink.set crm",
        "ann sink.remove crm",
        "ann quota.set * 5 open runs, no limit of starts a minute",
        "ann quota.set * no limit of open runs, no limit of starts a minute",
        "ann export run-2",
    ]


async def test_the_row_of_triggers_that_are_forgotten_names_their_workflow(engine: TestEngine) -> None:
    """The audit row of forgotten triggers names their workflow, and a second call that finds none writes no row.
    [S37]"""
    await give_triggers(engine, "gone")
    with engine.audit.acting("ann"):
        for _ in range(2):
            await engine.events.forget("gone")

    assert await said(engine) == ["ann trigger.forget gone"]


async def test_a_verb_for_many_runs_is_one_row_for_each(engine: TestEngine) -> None:
    """A verb for many runs has one row of the audit log for each of them."""
    for number in range(2):
        await engine.start(audited_failure, id=f"bad-{number}")
    await engine.settle()
    with engine.audit.acting("bob", key="k1", via="http", address="192.0.2.7"):
        await engine.retry(workflow="audited_failure", reason="again")
        await engine.settle()
        await engine.fork("bad-0", id="copy", reason="to look")
        await engine.settle()
        await engine.skip(hours=2)
        await engine.purge(workflow="audited_failure")
        with pytest.raises(RunNotFoundError):
            await engine.cancel("nothing")

    rows = await said(engine)
    assert rows[:3] == ["bob retry bad-0 again", "bob retry bad-1 again", "bob fork bad-0 to look"]
    assert sorted(rows[3:]) == ["bob purge bad-0", "bob purge bad-1", "bob purge copy"]
    (entry,) = await engine.audit.list(target="bad-0", verb="fork")
    assert (entry.key, entry.via, entry.address, entry.is_denied) == ("k1", "http", "192.0.2.7", False)


async def test_acts_of_steps_and_services_are_not_the_actors(engine: TestEngine) -> None:
    """A step that acts has no row of the person who started its run, because a context variable does not follow a
    run."""
    with engine.audit.acting("ann"):
        async with TestEngine() as inner:
            await inner.start(audited_parent, id="parent")
            await inner.settle()
            rows = await said(inner)

    assert rows == ["ann start parent"]


@outlive.step
async def audited_step() -> None:
    """Uses the engine as itself."""
    await outlive.current_engine().start(audited_failure, id="of-a-step")


@outlive.workflow
async def audited_parent() -> None:
    """Starts another run, and a step that does."""
    await outlive.start(audited_failure, id="of-a-run")
    await audited_step()


async def test_tampering_is_found(engine: TestEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that was changed, one that is missing, a beginning or an end that is missing. [S37]"""
    with engine.audit.acting("ann"):
        for number in range(5):
            await record_action(engine, "export", f"run-{number}")
    whole = await engine.audit.verify()
    rows = await store_of(engine).read_audit(limit=9)
    assert (whole.rows, whole.problems) == (5, ())

    async def problems(changed: list[AuditRow], *, since: str | None = None) -> tuple[str, ...]:
        return (await verified(engine, changed, monkeypatch, since=since)).problems

    forged = replace(rows[2], body=rows[2].body.replace("ann", "bob"))
    assert await problems([*rows[:2], forged, *rows[3:]]) == (
        "row 3 was changed, or the one before it was: its hash is not over the two",
    )
    first = replace(rows[0], body=rows[0].body.replace("ann", "bob"))
    assert await problems([first, *rows[1:]]) == (
        "row 1 was changed, or is not the first one: its hash is not over what it says",
    )
    assert await problems([*rows[:2], *rows[3:]]) == ("rows 3 to 3 are missing",)
    assert await problems(rows[1:]) == ("the rows before 2 are missing, and no row says that they were pruned",)
    assert await problems(rows[:4]) == ()
    assert await problems(rows[:4], since=whole.head) == ("the log ends at row 4, and had 5 at the earlier check",)
    assert await problems(rows, since=whole.head) == ()
    with pytest.raises(InvalidArgumentError, match="head"):
        await engine.audit.verify(since="5")


async def test_a_pruned_log_is_whole(engine: TestEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Old rows go after the span that the engine was given, and the log says which."""
    with engine.audit.acting("ann"):
        for number in range(3):
            await record_action(engine, "export", f"run-{number}")
        pruner = AuditPruner(store_of(engine), KeepAudit(MONTH))
        assert await pruner.run_once() > 60
        await engine.skip(days=31)
        await record_action(engine, "export", "run-3")
    await pruner.run_once()

    exported, pruned = await said(engine)
    assert (exported, pruned[:21]) == ("ann export run-3", "outlive audit.prune 3")
    check = await engine.audit.verify(keep=MONTH)
    assert (check.first, check.problems) == (4, ())
    first, said_so = await store_of(engine).read_audit(limit=9)
    forged = replace(first, body=first.body.replace("ann", "bob"))
    checks = [await verified(engine, each, monkeypatch, keep=MONTH) for each in ([said_so], [forged, said_so])]
    assert [check.problems[0][:46] for check in checks] == [
        "the rows before 5 are missing, and no row says",
        "row 4 was changed, or does not follow the rows",
    ]


async def test_a_check_against_a_pruned_row_fails(engine: TestEngine) -> None:
    """A check against the head of a row that was pruned fails, because a forged log could claim that its beginning was
    pruned. [S37]"""
    heads: list[str] = []
    with engine.audit.acting("ann"):
        for number in range(3):
            await record_action(engine, "export", f"run-{number}")
            heads.append((await engine.audit.verify()).head)
        await engine.skip(days=31)
        await record_action(engine, "export", "run-3")
    await AuditPruner(store_of(engine), KeepAudit(timedelta(days=30))).run_once()

    checks = [await engine.audit.verify(since=head, keep=timedelta(days=30)) for head in heads]
    assert [check.is_whole for check in checks] == [False, False, True]
    assert checks[0].problems[0].startswith("row 1, the last one at the earlier check, has gone")
    forged = heads[2].replace(":", ":0", 1).replace(heads[2].split(":")[1], heads[2].split(":")[1][:-1])
    assert not (await engine.audit.verify(since=forged, keep=timedelta(days=30))).is_whole


@pytest.mark.parametrize("wrong", [[KeepAudit(timedelta(days=2))] * 2, KeepAudit(timedelta(days=2))])
def test_two_retentions_of_the_audit_log_are_refused(wrong: object) -> None:
    """An engine refuses two retentions of its audit log."""
    with pytest.raises((ConfigurationError, TypeError)):
        outlive.Engine("memory:", retention=wrong)  # type: ignore[arg-type]


def test_an_audit_log_of_minutes_is_refused() -> None:
    """It would be none."""
    with pytest.raises(InvalidArgumentError, match="a day or more"):
        KeepAudit(timedelta(hours=1))


async def test_actors_at_once_are_not_mixed_up(engine: TestEngine) -> None:
    """Each request is a context of its own."""

    async def act(name: str) -> None:
        with engine.audit.acting(name):
            await asyncio.sleep(0)
            await engine.start(audited_failure, id=name)

    await asyncio.gather(*(act(name) for name in ("ann", "bob", "eve")))

    assert sorted(await said(engine)) == ["ann start ann", "bob start bob", "eve start eve"]


async def test_the_log_is_listed_page_by_page(engine: TestEngine) -> None:
    """Newest first, and by actor."""
    for number in range(5):
        with engine.audit.acting("ann" if number % 2 else "bob"):
            await record_action(engine, "look", str(number))
    first = await engine.audit.list(limit=3)
    rest = await engine.audit.list(limit=3, after=first.next)

    assert [entry.target for entry in (*first, *rest)] == ["4", "3", "2", "1", "0"]
    assert rest.next is None
    assert [entry.target for entry in await engine.audit.list(actor="ann")] == ["3", "1"]
    with pytest.raises(InvalidArgumentError, match="after"):
        await engine.audit.list(after="x")


async def verified(
    engine: outlive.Engine,
    rows: list[AuditRow],
    monkeypatch: pytest.MonkeyPatch,
    *,
    since: str | None = None,
    keep: timedelta | None = None,
) -> AuditCheck:
    """What a check says of these rows."""

    async def read_audit(*, after: int = 0, limit: int) -> list[AuditRow]:
        return [row for row in rows if row.number > after][:limit]

    with monkeypatch.context() as patched:
        patched.setattr(store_of(engine), "read_audit", read_audit)
        return await engine.audit.verify(since=since, keep=keep)


CARRIED = "name: carried\nsteps:\n  wait: { use: wait_for_signal, with: { name: go } }\n"


async def test_an_import_that_was_refused_has_no_row(engine: TestEngine) -> None:
    """An import that is refused has no row, and the document that came with it has one, because it stays. [S37]"""
    async with TestEngine() as other:
        await other.flows.apply(CARRIED)
        await other.flows.start("carried", id="o-1")
        await other.settle()
        text = await other.export("o-1")
    await engine.start(audited_order, 1, id="o-1")

    with engine.audit.acting("ann"):
        with pytest.raises(RunExistsError):
            await engine.import_run(text)
        assert await said(engine) == ["ann flow.bring carried"]
        await engine.import_run(text, id="o-2")
    assert [line for line in await said(engine) if "import" in line] == ["ann import o-2"]
