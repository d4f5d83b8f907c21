"""`outlive runs purge` as a shell and a program see it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from click.testing import CliRunner, Result

from outlive.cli import main
from outlive.engine.url import store_for
from outlive.testing.clock import ManualClock
from outlive_conformance.suite.builders import begin


def purge(place: Path, *args: str) -> Result:
    """Give the command."""
    return CliRunner().invoke(main, ["runs", "purge", *args], env={"OUTLIVE_STORE": f"sqlite:{place}"})


async def prepare(place: Path) -> None:
    """Two runs that ended last year, and one that is open."""
    store = store_for(f"sqlite:{place}", clock=ManualClock().now, is_test_clock=True)
    await store.open()
    for name in ("a", "b"):
        await (await begin(store, name, tags={"shop": name})).succeed()
    await begin(store, "open")
    await store.close()


def test_runs_are_shown_first_and_deleted_with_yes(tmp_path: Path) -> None:
    """How many, of what, from when to when; then the same for good, with an archive."""
    place = tmp_path / "purge.db"
    asyncio.run(prepare(place))

    seen = purge(place, "--workflow", "greet", "--older-than", "7d")
    assert (seen.exit_code, seen.output.splitlines()[-1]) == (0, "2 runs would be deleted; say --yes to do it")
    assert "greet     succeeded  2" in seen.output
    assert "ended from 2025-06-15 15:06:40 to 2025-06-15 15:06:40 UTC" in seen.output

    first = purge(place, "--tag", "shop=a", "--status", "succeeded", "--yes", "--json")
    assert json.loads(first.output)["deleted"] == 1
    done = purge(place, "--workflow", "greet", "--limit", "1", "--archive", str(tmp_path / "old"), "--yes")
    assert "1 run deleted" in done.output
    assert "archived in" in done.output
    assert purge(place, "--id-prefix", "open").output == "no run fits that ended so long ago\n"


def test_mistakes_are_one_line(tmp_path: Path) -> None:
    """Without a filter, with a span or a tag that is none, or with a status that is none."""
    place = tmp_path / "purge.db"
    asyncio.run(prepare(place))
    for args, words in {
        (): "say which runs",
        ("--workflow", "greet", "--older-than", "soon"): "for example 90s",
        ("--tag", "shop"): "NAME=VALUE",
    }.items():
        result = purge(place, *args)
        assert (result.exit_code, words in result.output) == (2, True)
    assert purge(place, "--status", "running").exit_code == 2
