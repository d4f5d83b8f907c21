"""A trial without any kill, in this process: healthy evidence that tests can doctor."""

import asyncio
import os
import time
from collections import Counter
from dataclasses import fields, replace
from typing import Any

import pytest

import outlive
from proof.storm import effects
from proof.storm.acks import Ack, AckLog
from proof.storm.client import Client
from proof.storm.evidence import Evidence, collect, wait_for_all
from proof.storm.places import sqlite
from proof.storm.trial import Trial

SEED = 4
JOBS = 45


@pytest.fixture(scope="session")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    """Some jobs, done."""
    folder = tmp_path_factory.mktemp("trial")
    with sqlite(folder) as place, pytest.MonkeyPatch.context() as patch:
        trial = Trial(folder=folder, url=place.url, store="sqlite", seed=SEED, kills=0, workers=0)
        patch.setenv(effects.PLACE, str(trial.effects))
        asyncio.run(_do_all(trial))
    return trial


@pytest.fixture(scope="session")
def collected(trial: Trial) -> Evidence:
    """What is known about it, as it was read. Not for tests: they get a copy."""
    evidence = Evidence(trial)
    asyncio.run(collect(evidence))
    return evidence


@pytest.fixture
def evidence(collected: Evidence) -> Evidence:
    """What is known about it: a copy that a test may doctor."""
    return replace(collected, **{it.name: _copy(getattr(collected, it.name)) for it in fields(collected)})


def _copy(value: Any) -> Any:
    """Containers are copied; what is in them does not change."""
    match value:
        case Counter():
            return Counter(value)
        case dict():
            return {key: _copy(each) for key, each in value.items()}
        case list():
            return list(value)
        case _:
            return value


async def _do_all(trial: Trial) -> None:
    todo = [Ack(op="trying", number=number, at=time.time(), pid=os.getpid()) for number in range(1, JOBS + 1)]
    async with asyncio.timeout(40), outlive.Engine(trial.url) as engine:
        await Client(engine, AckLog(trial.acks), trial.seed, todo).run(open_max=JOBS, is_draining=True)
        assert not await wait_for_all(trial.url, seconds=20)
