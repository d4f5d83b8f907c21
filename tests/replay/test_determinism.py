"""Time, randomness, ids and orders are functions of the journal, not of the process that replays it (I11)."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from outlive import now, random, uuid4
from outlive._kernel.journal.codec import salt_of, seal
from outlive.events import RunCreated
from tests.replay.define import NONCE, START_AT, Code, created, step, workflow
from tests.replay.driver import live
from tests.replay.elsewhere import CODE, worldly
from tests.replay.life import assert_replays, fed

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("hash_seed", ["1", "4294967295"])
def test_another_process_replays_the_same(hash_seed: str) -> None:
    """With another hash seed, clock, time zone and other memory addresses the run asks for the same, byte for byte."""
    life = live(worldly, code=CODE, seed=7)
    assert life.status == "succeeded"
    rows = [seal(event, salt=salt_of(NONCE), seq=seq) for seq, event in enumerate(life.journal)]

    path = os.pathsep.join(sys.path)
    output = subprocess.run(
        [sys.executable, "-m", "tests.replay.elsewhere"],
        input=json.dumps([(seq, format_, crc, body.decode()) for seq, format_, crc, body in rows]),
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "TZ": "Pacific/Chatham", "PYTHONPATH": path},
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )

    assert json.loads(output.stdout) == [[repr(command) for command in asked] for asked in life.asked]
    assert output.stderr == ""


@pytest.mark.parametrize("seed", range(5))
def test_the_worldly_workflow_replays_from_every_prefix(seed: int) -> None:
    """The workflow that uses time, chance and ids replays in this process from every prefix of its journal."""
    assert_replays(live(worldly, code=CODE, seed=seed))


@step()
async def wait() -> None:
    """Something that takes time."""


@workflow()
async def chances() -> list[str]:
    """Random things before and after a step."""
    first = [str(random()), str(uuid4())]
    await wait()
    return [*first, str(random()), str(uuid4()), now().isoformat()]


def test_now_is_the_time_of_the_last_event(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of the process is not asked."""
    monkeypatch.setattr(time, "time", lambda: pytest.fail("the clock was read"))
    life = live(chances)

    assert life.result[-1] == datetime.fromtimestamp(START_AT / 1e6, UTC).isoformat() == "2023-11-14T22:13:20+00:00"


def test_random_numbers_differ_within_a_run_and_between_runs() -> None:
    """A run draws different numbers and the same ones in each replay; a run with another nonce draws others."""
    drawn = [live(chances).result, live(chances).result]
    with fed(Code(chances), [_with_nonce(1)]) as one, fed(Code(chances), [_with_nonce(2)]) as two:
        numbers = [each.frames[0].scope.random().random() for each in (one, two)]

    assert drawn[0] == drawn[1]
    assert len(set(drawn[0])) == 5
    assert len(set(numbers)) == 2


def _with_nonce(nonce: int) -> RunCreated:
    return msgspec.structs.replace(created(chances), nonce=nonce)


def test_an_id_is_a_proper_uuid4() -> None:
    """Version and variant are right, so other systems accept it."""
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", live(chances).result[1])


def test_outside_a_run_the_names_are_ordinary() -> None:
    """A function that uses them can be tested without an engine."""
    assert abs((now() - datetime.now(UTC)).total_seconds()) < 60
    assert random() != random()
    assert uuid4() != uuid4()
