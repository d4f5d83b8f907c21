"""The data of events: in the form of people, and nothing that only the store reads."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

import outlive
from outlive import types
from outlive._kernel.values.event import event_of
from outlive.http import Api
from outlive.testing import TestEngine
from tests.http.caller import Caller
from tests.journal.events import AT, SAMPLES

LARGEST = 10**12
"""An instant in microseconds or milliseconds is above it."""
STORED = {
    *("nonce", "seed", "digest", "follows", "crc", "asked", "epoch", "lead", "frees_slot", "has_slot", "has_turn"),
    *("spends_names", "before", "notify", "gives_way", "rests", "forks", "checked", "next_number", "run", "parent"),
}
"""Fields of journals that people never see."""
JOURNALED_AT = datetime.fromtimestamp(AT // 1_000_000, UTC) + timedelta(microseconds=AT % 1_000_000)


def inside(value: Any) -> Iterator[tuple[str, Any]]:
    """Each value at any depth of a JSON value, with its key."""
    for key, each in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield str(key), each
        yield from inside(each)


@pytest.mark.parametrize("name", SAMPLES)
def test_event_has_nothing_that_only_the_store_reads(name: str) -> None:
    """No key of proofs or queues at any depth, no instant as a number, no session of a worker."""
    data = msgspec.to_builtins(event_of(7, SAMPLES[name], "order-7")).pop("data")
    found = list(inside(data))

    assert [key for key, _ in found if key in STORED] == []
    assert [each for each in found if isinstance(each[1], int) and abs(each[1]) > LARGEST] == []


@pytest.mark.parametrize("name", SAMPLES)
def test_event_is_the_same_after_its_way_through_json(name: str) -> None:
    """A connection gives datetimes, timedeltas, waits and failures, as an engine does."""
    own = event_of(7, SAMPLES[name], "order-7")

    assert msgspec.json.decode(msgspec.json.encode(own), type=types.Event) == own


def test_instants_spans_and_runs_have_the_types_of_other_values() -> None:
    """A deadline is a datetime, a back-off ends at one, a wait is `types.Wait`, and a child names its parent."""
    data = {name: event_of(7, event, "order-7").data for name, event in SAMPLES.items()}
    first, *_ = data["RunSuspended"]["waits"]

    assert data["RunCreated"]["timeout_at"] == JOURNALED_AT + timedelta(minutes=1)
    assert data["RunCreated"]["begin_by"] is None
    assert data["RunRetried"]["rested"] == timedelta(minutes=1)
    assert data["AttemptFailed"]["took"] is None
    assert data["ApprovalDecided"]["payload"] == {"approved": True, "by": "ann", "at": JOURNALED_AT}
    assert data["ApprovalRequested"]["payload"]["deadline_at"] == JOURNALED_AT + timedelta(minutes=1)
    assert first == types.Wait("timer", "@timer#2", JOURNALED_AT + timedelta(microseconds=5), run_id="order-7")
    assert isinstance(data["StepFailed"]["failure"], types.Failure)
    assert data["SnapshotTaken"]["created"]["parent_id"] is None


def test_worker_of_an_event_is_its_name() -> None:
    """A session is of the store; the name of its worker is what other answers have."""
    claimed = msgspec.structs.replace(SAMPLES["RunClaimed"], worker="vm/20106#cad8")

    assert event_of(7, claimed, "order-7").data["worker"] == "vm/20106"


@outlive.workflow
async def asks_people() -> bool:
    """Asks for one decision."""
    return bool(await outlive.wait_for_approval("refund"))


async def test_payload_of_a_decision_that_is_asked_for_alone_has_no_nonce() -> None:
    """Promises and idempotency keys are made of the nonce of the tree, so no answer has it."""
    async with TestEngine() as engine:
        run = await engine.start(asks_people, id="a-1")
        await engine.settle()
        await engine.approvals.approve("a-1", "refund", by="ann")
        assert await run.result() is True
        (decided,) = [event for event in await run.history() if event.type == "ApprovalDecided"]
        alone = await Caller(Api(engine)).get(f"/api/v1/runs/a-1/history/{decided.seq}/payload")

    assert decided.data["payload"].keys() == {"approved", "by", "at"}
    assert alone.data == msgspec.to_builtins(decided.data["payload"])
