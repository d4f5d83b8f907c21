"""What `audit verify` shows of an attacker who writes the chain again: what was kept outside of the store decides."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

import outlive
from outlive._features.security.audit_pruner import AuditPruner
from outlive._features.security.audit_sealer import AuditSealer
from outlive._kernel.store.audit import NO_HASH, Action, AuditRow, body_of, decode_action, hash_of, pruned, sealed
from outlive.cli import main
from outlive.errors import ConfigurationError, InvalidArgumentError
from outlive.retention import KeepAudit
from outlive.testing import TestEngine
from outlive.types import AuditCheck
from tests.engine.inside import record_action, store_of
from tests.engine.support import until

KEY, ANOTHER_KEY = b"k" * 32, b"a" * 32
YEAR, DAY = timedelta(days=365), timedelta(days=1)


@pytest.fixture
async def engine() -> AsyncIterator[TestEngine]:
    """An engine that keeps all rows, and has no key."""
    async with TestEngine(worker=False) as engine:
        yield engine


async def write(engine: TestEngine, count: int = 1) -> None:
    """Some rows."""
    with engine.audit.acting("ann"):
        for number in range(count):
            await record_action(engine, "export", f"run-{number}")


async def rows_of(engine: TestEngine) -> list[AuditRow]:
    """All rows, as an attacker copies them."""
    return await store_of(engine).read_audit(limit=1_000)


def chained(rows: list[AuditRow], *, after: str = NO_HASH) -> list[AuditRow]:
    """Rows with hashes that fit, as an attacker writes them again."""
    done: list[AuditRow] = []
    for row in rows:
        after = hash_of(after, row.number, row.at, row.body)
        done.append(replace(row, hash=after, found_by=None))
    return done


def with_row(rows: list[AuditRow], action: Action, *, at: int | None = None) -> list[AuditRow]:
    """Rows, and one more that fits."""
    last = rows[-1]
    row = AuditRow(last.number + 1, last.at if at is None else at, body_of(action), "")
    return [*rows, *chained([row], after=last.hash)]


def cut(rows: list[AuditRow], number: int, *, key: bytes | None = None) -> list[AuditRow]:
    """Rows without those up to a number, behind a forged row that says that they were pruned."""
    return with_row(rows, pruned(rows[number - 1], key))[number:]


async def checked(
    engine: TestEngine,
    rows: list[AuditRow],
    monkeypatch: pytest.MonkeyPatch,
    *,
    since: str | None = None,
    keep: timedelta | None = None,
    key: bytes | None = None,
) -> AuditCheck:
    """What a check says of these rows."""

    async def read_audit(*, after: int = 0, limit: int) -> list[AuditRow]:
        return [row for row in rows if row.number > after][:limit]

    with monkeypatch.context() as patched:
        patched.setattr(store_of(engine), "read_audit", read_audit)
        return await engine.audit.verify(since=since, keep=keep, key=key)


# -- What was pruned ------------------------------------------------------------------------------------------------


async def test_a_forged_prune_row_is_found(engine: TestEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """By settings that keep all rows, by settings that keep them longer than the log is old, and by the key. [S37]"""
    await write(engine, 3)
    head = (await engine.audit.verify()).head
    await engine.skip(days=10)
    await write(engine, 2)
    forged = cut(await rows_of(engine), 2)

    assert "does not know how long rows are kept" in (await checked(engine, forged, monkeypatch)).problems[0]
    assert "does not know" in (await checked(engine, forged, monkeypatch, since=head)).problems[0]
    young = await checked(engine, forged, monkeypatch, since=head, keep=YEAR)
    assert "was pruned at" in young.problems[0]
    assert "not old enough" in young.problems[0]
    for key in (None, ANOTHER_KEY):
        forged = cut(await rows_of(engine), 2, key=key)
        check = await checked(engine, forged, monkeypatch, keep=DAY, key=KEY)
        assert any("was not written with this key" in each for each in check.problems), key


async def test_no_row_of_a_person_says_that_rows_were_pruned(
    engine: TestEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The code of a program may write any verb into the log, under the name of its user. [S37]"""
    await write(engine, 3)
    rows = await rows_of(engine)
    forged = with_row(rows, replace(pruned(rows[1]), actor="ann"))[2:]

    check = await checked(engine, forged, monkeypatch, keep=DAY)
    assert check.problems == ("the rows before 3 are missing, and no row says that they were pruned",)


async def test_a_log_that_was_written_again_has_another_head(
    engine: TestEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All hashes were made again, and there is no key: the row of the head shows it. [S37]"""
    await write(engine, 3)
    head, rows = (await engine.audit.verify()).head, await rows_of(engine)
    rows[0] = replace(rows[0], body=body_of(Action(actor="bob", verb="look")))
    forged = chained(rows)

    assert (await checked(engine, forged, monkeypatch)).is_whole
    check = await checked(engine, forged, monkeypatch, since=head)
    assert check.problems == ("row 3 has another hash than it had at the earlier check",)


async def test_a_check_counts_pruned_rows(engine: TestEngine) -> None:
    """A check of the audit log says how many rows were pruned, when, and how many since the earlier check. [S37]"""
    prune = AuditPruner(store_of(engine), KeepAudit(timedelta(days=30), KEY)).run_once
    await write(engine, 3)
    await engine.skip(days=31)
    await write(engine, 2)
    await prune()
    first = await engine.audit.verify(keep=timedelta(days=30))
    await engine.skip(days=31)
    await write(engine)
    await prune()

    assert (first.pruned, first.pruned_since, first.problems) == (3, 0, ())
    check = await engine.audit.verify(since=first.head, keep=timedelta(days=30))
    assert (check.pruned, check.pruned_since, check.problems) == (5 + 1, 3, ())
    assert check.pruned_at is not None
    assert first.pruned_at is not None
    assert check.pruned_at - first.pruned_at >= timedelta(days=31)
    assert "not old enough" in (await engine.audit.verify(keep=YEAR, since=first.head)).problems[0]


async def test_a_proven_prune_row_needs_no_settings(engine: TestEngine) -> None:
    """The key shows that a worker wrote it."""
    await write(engine, 3)
    await engine.skip(days=31)
    await write(engine)
    await AuditPruner(store_of(engine), KeepAudit(timedelta(days=30), KEY)).run_once()
    await AuditSealer(store_of(engine), KEY).run_once()

    check = await engine.audit.verify(key=KEY)
    assert (check.problems, check.pruned, check.sealed) == ((), 3, 5)


async def test_a_head_of_an_earlier_release_is_compared(engine: TestEngine) -> None:
    """It has two parts, and says nothing of what had gone before."""
    await write(engine, 2)
    number, digits, *_ = (await engine.audit.verify()).head.split(":")

    assert (await engine.audit.verify(since=f"{number}:{digits}")).is_whole
    for wrong in (f"{number}:{digits}:1", f"{number}:{digits}:1:x", f"{number}:{digits}:1:2:3", "x:" + digits):
        with pytest.raises(InvalidArgumentError, match="head"):
            await engine.audit.verify(since=wrong)


# -- What is sealed -------------------------------------------------------------------------------------------------


async def sealed_log(engine: TestEngine) -> list[AuditRow]:
    """Five rows with two seals: of the second one, and of the fifth."""
    sealer = AuditSealer(store_of(engine), KEY)
    assert await sealer.run_once() > 60
    await write(engine, 2)
    await sealer.run_once()
    await sealer.run_once()
    await write(engine, 2)
    await sealer.run_once()
    rows = await rows_of(engine)
    assert [decode_action(row.body).verb for row in rows] == ["export"] * 2 + ["audit.seal"] + ["export"] * 2 + [
        "audit.seal"
    ]
    return rows


async def test_a_sealed_log_is_proven_up_to_its_last_seal(engine: TestEngine) -> None:
    """With the key; a check without the key says nothing of seals."""
    await sealed_log(engine)

    assert ((await engine.audit.verify(key=KEY)).sealed, (await engine.audit.verify()).sealed) == (5, 0)
    assert (await engine.audit.verify(key=KEY)).is_whole
    assert not (await engine.audit.verify(key=ANOTHER_KEY)).is_whole


@pytest.mark.parametrize("number", [1, 2, 4, 5])
async def test_a_row_that_was_changed_behind_the_chain_is_found(
    engine: TestEngine, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All hashes were made again, and nothing but the seals shows it. [S37]"""
    rows = await sealed_log(engine)
    rows[number - 1] = replace(rows[number - 1], body=body_of(Action(actor="bob", verb="look")))
    forged = chained(rows)

    assert (await checked(engine, forged, monkeypatch)).is_whole
    check = await checked(engine, forged, monkeypatch, key=KEY)
    assert f"row {2 if number < 3 else 5} has another hash" in check.problems[0]
    assert check.sealed < 5


async def test_a_log_that_lost_its_seals_is_found(engine: TestEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A day later, or when a worker seals what is old: a head from before shows whether it is the same. [S37]"""
    rows = await sealed_log(engine)
    head = (await engine.audit.verify()).head
    plain = [row for row in rows if decode_action(row.body).verb == "export"]
    forged = chained([replace(row, number=number) for number, row in enumerate(plain, 1)])
    resealed = with_row(forged, sealed(forged[-1], KEY), at=forged[-1].at + 2 * 86_400_000_000)

    assert (await checked(engine, forged, monkeypatch, key=KEY)).is_whole, "no worker could have sealed it yet"
    await engine.skip(days=2)
    assert "are not sealed" in (await checked(engine, forged, monkeypatch, key=KEY)).problems[0]
    check = await checked(engine, resealed, monkeypatch, key=KEY)
    assert "rows up to 4 were a day old or more when they were sealed" in check.problems[0]
    assert not (await checked(engine, resealed, monkeypatch, key=KEY, since=head)).is_whole


async def test_a_key_that_came_later_needs_a_head_from_before(engine: TestEngine) -> None:
    """Rows from before the key are proven only by the head of an earlier check."""
    await write(engine, 3)
    await engine.skip(days=2)
    head = (await engine.audit.verify()).head
    await AuditSealer(store_of(engine), KEY).run_once()

    assert not (await engine.audit.verify(key=KEY)).is_whole
    assert (await engine.audit.verify(key=KEY, since=head)).is_whole


async def test_a_copy_of_a_seal_hides_nothing(engine: TestEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """An attacker who cannot make seals adds one that is there again and again. [S37]"""
    rows = (await sealed_log(engine))[:3]
    copy = decode_action(rows[2].body)
    for day in range(3):
        written = with_row(rows, Action(actor="bob", verb="look"), at=rows[-1].at + day * 86_400_000_000)
        rows = with_row(written, copy)
    await engine.skip(days=3)

    check = await checked(engine, rows, monkeypatch, key=KEY)
    assert check.sealed == 2
    assert "the rows behind 2 are not sealed" in check.problems[0]


async def written(store: str) -> None:
    """A store whose log has a row."""
    async with outlive.Engine(store, worker=False) as engine:
        with engine.audit.acting("ann"):
            await record_action(engine, "export", "run-1")


# -- Keys -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [b"short", b"", "k" * 32])
def test_a_key_that_can_be_guessed_is_refused(wrong: object) -> None:
    """A key that is too short or is not bytes is refused, and no error shows it."""
    with pytest.raises((ConfigurationError, TypeError)) as refused:
        KeepAudit(YEAR, wrong)  # type: ignore[arg-type]

    assert "short" not in str(refused.value)
    assert "kkk" not in str(refused.value) + repr(KeepAudit(YEAR, KEY))


def test_a_rule_for_the_log_says_something() -> None:
    """How long, or a key."""
    with pytest.raises(InvalidArgumentError, match="or give a key"):
        KeepAudit()


async def test_workers_seal_the_log(tmp_path: Path) -> None:
    """A worker whose settings have a key, without a span for which rows are kept."""
    store = f"sqlite:{tmp_path / 'runs.db'}"
    await written(store)
    async with outlive.Engine(store, retention=[KeepAudit(key=KEY)]) as engine:

        async def is_sealed() -> bool:
            return bool(await engine.audit.list(verb="audit.seal"))

        await until(is_sealed)
        assert (await engine.audit.verify()).sealed == 1


def test_the_command_reads_the_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """How long rows are kept, and the file with the key; flags go before them."""
    monkeypatch.chdir(tmp_path)
    Path("audit.key").write_bytes(KEY + b"\n")
    Path("outlive.toml").write_text('store = "sqlite:runs.db"\n[retention]\naudit_key_file = "audit.key"\n', "utf-8")
    run = CliRunner().invoke
    asyncio.run(written("sqlite:runs.db"))
    whole = run(main, ["audit", "verify"])
    wrong = run(main, ["audit", "verify", "--key-file", "none.key"])

    assert (whole.exit_code, wrong.exit_code) == (0, 2), (whole.output, wrong.output)
    assert "none.key" in wrong.output
    assert (
        run(main, ["audit", "verify", "--keep", "365d", "--head", whole.output.split("head ")[1].strip()]).exit_code
        == 0
    )
