"""`outlive schedules` as a shell sees it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest
from click.testing import CliRunner, Result

import outlive
from outlive.cli import main

Ask = Callable[..., Result]


@outlive.workflow
async def listed_by_shell(customer: int) -> int:
    """What the schedule starts."""
    return customer


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    """Gives commands about a store with one schedule."""
    url = f"sqlite:{tmp_path / 'ask.db'}"

    async def prepare() -> None:
        async with outlive.Engine(url, worker=False) as engine:
            hourly = outlive.every(hours=1, args={"customer": 7})
            await engine.schedules.set("sync-7", hourly, listed_by_shell)

    def give(*args: str) -> Result:
        found: list[Result] = []
        env = {"OUTLIVE_STORE": url}
        thread = Thread(target=lambda: found.append(CliRunner().invoke(main, ["schedules", *args], env=env)))
        thread.start()
        thread.join()
        return found[0]

    thread = Thread(target=lambda: asyncio.run(prepare()))
    thread.start()
    thread.join()
    return give


def test_a_person_looks_at_schedules_and_changes_them(ask: Ask) -> None:
    """Each command says what became of it, for people and for programs."""
    assert "schedule sync-7 is paused\n" == ask("pause", "sync-7", "--by", "ann", "--reason", "she moves").output
    table = ask("list").output.splitlines()
    assert ["SCHEDULE", "WORKFLOW", "LAST", "WHY"] == table[0].split()
    assert "listed_by_shell@1" in table[1]
    assert "it is paused by ann: she moves" in table[1]

    assert "it fires next at" in ask("resume", "sync-7").output
    (plain,) = json.loads(ask("list", "--json").output)
    assert ("sync-7", False, 5, []) == (
        plain["name"],
        plain["is_paused"],
        len(plain["next_fires"]),
        plain["last"],
    )
    assert ask("trigger", "sync-7").output.startswith("run sync-7@")
    refused = ask("trigger", "sync-7")
    assert (1, True) == (refused.exit_code, "is open; wait for its end" in refused.output)
    assert "schedule sync-7: 3 ticks to run\n" == ask("backfill", "sync-7", "2024-01-01", "2024-01-01T03:00Z").output
    assert "schedule sync-7 is deleted\n" == ask("delete", "sync-7").output
    assert "there are no schedules on this store\n" == ask("list").output


def test_an_unknown_schedule_and_a_wrong_time_have_exit_codes(ask: Ask) -> None:
    """An unknown schedule exits with 1, and a wrong time with 2."""
    unknown, mistake = ask("resume", "digest"), ask("backfill", "sync-7", "yesterday", "2024-01-01")

    assert (1, 2) == (unknown.exit_code, mistake.exit_code)
    assert "there is no schedule 'digest'" in unknown.output
    assert "yesterday: it is not a time" in mistake.output
