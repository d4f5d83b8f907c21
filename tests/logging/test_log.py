"""What the log says of runs: every trouble, once it is durable, with run, workflow, step and attempt as fields."""

from __future__ import annotations

import asyncio
import linecache
import logging
import re

import pytest

import outlive
from outlive._kernel.runtime.session.claimer import reclaiming
from outlive.engine.url import shown
from outlive.testing import TestEngine
from tests.engine.faults import FaultyStore, unavailable
from tests.engine.inside import crash, fence, row_of, store_of, wrap_inner
from tests.engine.support import Place, hold, in_time, stage, until


@pytest.fixture(autouse=True)
def everything(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing is too small to be heard."""
    caplog.set_level(logging.INFO, "outlive")


def lines(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    """The records that are about runs."""
    return [record for record in caplog.records if hasattr(record, "run_id")]


def fields(record: logging.LogRecord) -> tuple[object, ...]:
    """What a record says besides its text."""
    return tuple(getattr(record, name) for name in ("levelname", "run_id", "workflow", "step", "attempt"))


@outlive.step(name="log_flaky", retry=outlive.Retry(attempts=3, first=60, factor=1, jitter=0))
async def flaky(good: int) -> int:
    if outlive.current_step().attempt < good:
        raise ConnectionError("refused")
    return good


@outlive.workflow
async def tries(good: int) -> int:
    return await flaky(good)


@outlive.workflow
async def parent() -> str:
    try:
        await tries(9)
    except ConnectionError:
        return "caught"
    return ""


@outlive.workflow
async def opens_a_thread() -> None:
    await asyncio.to_thread(print)


@outlive.workflow
async def too_long() -> None:
    await outlive.wait_for_signal("never")


class Broken(logging.Handler):
    """A handler of an application, whose other end is away."""

    def emit(self, record: logging.LogRecord) -> None:
        raise ConnectionError("the server of logs is away")


async def test_a_handler_that_raises_harms_no_run(capsys: pytest.CaptureFixture[str]) -> None:
    """It is called when something is durable and before anybody hears of it: all of them still do."""
    broken = Broken()
    logging.getLogger("outlive").addHandler(broken)
    try:
        async with TestEngine() as engine:
            assert 2 == await (await engine.start(tries, 2)).result()
            with pytest.raises(outlive.errors.RunFailedError):
                await (await engine.start(tries, 9)).result()
            with pytest.raises(outlive.errors.RunParkedError):
                await (await engine.start(opens_a_thread)).result()
    finally:
        logging.getLogger("outlive").removeHandler(broken)
    assert "the server of logs is away" in capsys.readouterr().err


async def test_a_failed_attempt_is_logged_with_the_next_one(caplog: pytest.LogCaptureFixture) -> None:
    """Each failed attempt is a line with its error and when the next one comes."""
    async with TestEngine() as engine:
        await (await engine.start(tries, 3, id="a")).result()

    first, second = lines(caplog)
    assert ("INFO", "a", "tries", "log_flaky", 1) == fields(first)
    assert ("INFO", "a", "tries", "log_flaky", 2) == fields(second)
    assert "ConnectionError: refused" in first.getMessage()
    assert "attempt 2 is due at" in first.getMessage()


async def test_a_failed_run_is_a_warning_with_the_traceback_of_the_code(caplog: pytest.LogCaptureFixture) -> None:
    """The last attempt says that no other follows, and the run where in the user's code it went wrong."""
    async with TestEngine() as engine:
        with pytest.raises(outlive.errors.RunFailedError):
            await (await engine.start(tries, 9, id="a")).result()

    last, ended = lines(caplog)[-2:]
    assert ("INFO", "a", "tries", "log_flaky", 3) == fields(last)
    assert "no other attempt" in last.getMessage()
    assert ("WARNING", "a", "tries", None, None) == fields(ended)
    assert "ConnectionError: refused" in ended.getMessage()
    assert f'File "{__file__}"' in ended.getMessage()


async def test_the_failure_of_a_child_is_logged_as_information(caplog: pytest.LogCaptureFixture) -> None:
    """The failure of a child is logged as information, because its parent gets the exception and decides."""
    async with TestEngine() as engine:
        assert "caught" == await (await engine.start(parent, id="a")).result()

    assert ("INFO", "a~1", "tries", None, None) == fields(lines(caplog)[-1])


async def test_a_parked_run_is_an_error_with_the_reason_and_what_to_do(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing else would be heard of it."""
    async with TestEngine() as engine:
        await engine.start(opens_a_thread, id="a")
        await engine.settle()

    (record,) = lines(caplog)
    assert ("ERROR", "a", "opens_a_thread", None, None) == fields(record)
    assert "is not durable" in record.getMessage()
    assert "resume" in record.getMessage()


async def test_a_run_that_takes_too_long_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    """It did not end as anybody wanted."""
    async with TestEngine() as engine:
        with pytest.raises(outlive.errors.RunTimedOutError):
            await (await engine.start(too_long, id="a", timeout=5)).result()

    assert ("WARNING", "a", "too_long", None, None) == fields(lines(caplog)[-1])


async def test_secrets_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The log hides the fields that `redact` hides from people. [S30]"""

    async with TestEngine(redact=("card",)) as engine:
        with pytest.raises(outlive.errors.RunFailedError):
            await (await engine.start(declines, id="a")).result()

    assert lines(caplog)
    assert not [record for record in lines(caplog) if "4111-secret" in record.getMessage()]


class DeclinedError(Exception):
    def __init__(self, card: str) -> None:
        self.card = card
        super().__init__(f"{card} was declined")


@outlive.workflow
async def declines() -> None:
    raise DeclinedError("4111-secret")


@outlive.workflow
async def held_after_trouble() -> str:
    stage.call("body")
    await quickly_flaky()
    return await hold("held")


@outlive.step(retry=outlive.Retry(attempts=2, first=0))
async def quickly_flaky() -> None:
    if outlive.current_step().attempt == 1:
        raise ConnectionError("refused")


async def test_a_take_over_is_logged_and_the_replay_logs_nothing_again(caplog: pytest.LogCaptureFixture) -> None:
    """A worker that rebuilds a run logs the take-over and does not repeat the earlier lines of the run."""
    place = Place(None)
    first = await place.engine().__aenter__()
    await first.start(held_after_trouble, id="a")
    await stage.gate("held").reached()
    await crash(first)
    assert ["INFO"] == [record.levelname for record in lines(caplog)]
    caplog.clear()

    async with place.engine() as second:
        await stage.gate("held").reached()
        stage.gate("held").open()
        await in_time(second.get("a").result())

    (record,) = lines(caplog)
    assert ("INFO", "a", "held_after_trouble", None, None) == fields(record)
    assert "is taken over" in record.getMessage()


async def test_each_run_that_is_lost_with_the_lease_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The log has a warning with the reason for each run whose lease was lost."""
    async with Place(None).engine() as engine:
        await engine.start(held_after_trouble, id="a")
        await stage.gate("held").reached()
        caplog.clear()
        fence(engine)
        stage.gate("held").open()
        await in_time(engine.get("a").result())

    (record,) = [record for record in lines(caplog) if record.levelname == "WARNING"]
    assert ("WARNING", "a", "held_after_trouble", None, None) == fields(record)
    assert "lost its lease (a test says so)" in record.getMessage()


async def test_attaching_to_a_run_that_has_ended_runs_and_logs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """The code of an ended run is not begun again for a caller that wants its result."""
    stage.gate("held").open()
    async with Place(None).engine() as engine:
        first = await engine.start(held_after_trouble, id="a")
        assert "held" == await in_time(first.result())
        caplog.clear()

        again = await engine.start(held_after_trouble, id="a")

        assert "held" == await in_time(again.result())
    assert 1 == stage.count("body")
    assert [] == caplog.records


async def test_a_worker_that_was_overtaken_says_so(caplog: pytest.LogCaptureFixture) -> None:
    """Only who finds the journal continued by another says that it is no longer theirs."""
    place = Place(None)
    async with place.engine() as engine:
        run = await engine.start(held_after_trouble, id="a")
        await stage.gate("held").reached()
        root = await row_of(run)
        caplog.clear()
        change, _ = reclaiming(root, await store_of(engine).read_journal(root.journal), worker_id="other", at=0)
        await store_of(engine).commit([change])
        stage.gate("held").open()

        async def is_said() -> bool:
            return bool(lines(caplog))

        await until(is_said)
    record = lines(caplog)[0]
    assert ("WARNING", "a", "held_after_trouble", None, None) == fields(record)
    assert "another worker has gone on with it" in record.getMessage()


def test_a_store_is_named_without_its_password() -> None:
    """The name of a store in the log shows host, database and schema, but no password."""
    assert "postgresql://db:5432/shop (schema outlive)" == shown("postgresql://ann:secret@db:5432/shop")
    assert "sqlite:shop.db" == shown("sqlite:shop.db")


async def dies() -> None:
    await outlive.wait_for_signal("die")
    raise ValueError("in the background")


@outlive.workflow
async def has_a_background_task() -> str:
    task = asyncio.create_task(dies())
    await hold("held")
    await hold("later")
    return str(task.done())


async def test_a_background_task_that_dies_is_reported_at_once_and_once(caplog: pytest.LogCaptureFixture) -> None:
    """While the run goes on, with the line that failed; a replay does not say it again."""
    place = Place(None)
    first = await place.engine().__aenter__()
    await first.start(has_a_background_task, id="a")
    await stage.gate("held").reached()
    await first.signal("a", "die")
    stage.gate("held").open()
    await stage.gate("later").reached()
    await crash(first)

    (record,) = lines(caplog)
    assert ("WARNING", "a", "has_a_background_task", None, None) == fields(record)
    assert "ValueError: in the background" in record.getMessage()
    assert f'File "{__file__}"' in record.getMessage()
    caplog.clear()
    async with place.engine() as second:
        await stage.gate("later").reached()
        stage.gate("later").open()
        assert "True" == await in_time(second.get("a").result())
    assert not [record for record in lines(caplog) if "background" in record.getMessage()]


@outlive.workflow
async def looks_at_its_tasks() -> None:
    results = await asyncio.gather(fails_later(), return_exceptions=True)
    assert isinstance(results[0], ValueError)
    done, _ = await asyncio.wait([asyncio.create_task(fails_later())])
    assert isinstance(done.pop().exception(), ValueError)
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(fails_later())
    except* ValueError:
        """As expected."""


async def fails_later() -> None:
    await asyncio.sleep(1)
    raise ValueError("seen")


async def test_a_task_that_is_waited_for_is_not_reported(caplog: pytest.LogCaptureFixture) -> None:
    """The caller that waits for it has the exception."""
    async with TestEngine() as engine:
        await (await engine.start(looks_at_its_tasks)).result()

    assert [] == lines(caplog)


@outlive.workflow
async def hides_it_in_a_task() -> None:
    await asyncio.gather(asyncio.to_thread(print))  # the line in a task


@pytest.mark.parametrize(
    ("workflow", "text"), [(opens_a_thread, "to_thread(print)"), (hides_it_in_a_task, "the line in")]
)
async def test_the_reason_of_a_parked_run_names_the_line_of_its_code(
    workflow: outlive.types.Workflow[[], None], text: str
) -> None:
    """A run that is parked for a call that is not durable names the file and line of that call."""
    async with TestEngine() as engine:
        with pytest.raises(outlive.errors.RunParkedError) as caught:
            await (await engine.start(workflow, id="a")).result()

    found = re.search(rf"at {re.escape(__file__)}:(\d+) in {workflow.name}", caught.value.reason)
    assert found is not None, caught.value.reason
    assert text in linecache.getline(__file__, int(found[1]))


async def test_store_that_is_away_is_logged_once_while_it_is_away(caplog: pytest.LogCaptureFixture) -> None:
    """Not with every look for work; and again when it is away again."""
    engine = TestEngine()
    store = wrap_inner(engine, FaultyStore)

    def times_logged() -> int:
        return caplog.text.count("claiming goes on when it is back")

    async def be_away_for_looks(count: int) -> None:
        store.before["claim_runs"].extend(unavailable() for _ in range(count))
        while store.before["claim_runs"]:
            await engine.skip(seconds=60)
        await engine.skip(seconds=60)

    async with engine:
        await be_away_for_looks(3)
        assert times_logged() == 1
        await be_away_for_looks(1)
        assert times_logged() == 2


async def test_a_claim_that_fails_is_tried_again_after_a_pause(caplog: pytest.LogCaptureFixture) -> None:
    """Whatever went wrong with it: asking again at once would fill the log and the machine."""
    engine = TestEngine()
    store = wrap_inner(engine, FaultyStore)
    async with engine:
        await engine.settle()
        store.before["claim_runs"].extend(LookupError("a bug") for _ in range(3))
        await engine.skip(seconds=60)
        assert store.before["claim_runs"]

        while store.before["claim_runs"]:
            await engine.skip(seconds=60)
    assert caplog.text.count("claiming failed; it is tried again") == 3


@outlive.step(name="log_login", retry=outlive.Retry(attempts=2, first=0))
async def login(user: str, password: str) -> None:
    """What a library may say when it fails."""
    raise PermissionError(f"{user} with {password} is refused")


@outlive.workflow(name="log_logs_in")
async def logs_in(user: str, password: str) -> None:
    """The value reaches the step under another name than here."""
    try:
        await login(user, password)
    except PermissionError:
        await asyncio.sleep(60)
        raise


@outlive.workflow(name="log_calls_child")
async def calls_child(secret: dict[str, str]) -> None:
    """A child of which only its own parameters say what is not to be seen."""
    await logs_in("ann", secret["value"])


@pytest.mark.parametrize("argument", ["own", "of a child"])
async def test_no_line_has_what_is_redacted(caplog: pytest.LogCaptureFixture, argument: str) -> None:
    """Not in the line of an attempt, nor in those of the runs that fail because of it, nor after a restart."""
    async with TestEngine(redact=["password", "token"]) as engine:
        headers = {"token": "header-secret"}
        if argument == "own":
            run = await engine.start(logs_in, "ann", "hunter22", headers=headers)
        else:
            run = await engine.start(calls_child, {"value": "hunter22"}, headers=headers)
        with pytest.raises(outlive.errors.RunFailedError, match="hunter22"):
            await run.result()

    assert caplog.text.count("ann with [redacted] is refused") >= 3
    assert "hunter22" not in caplog.text
