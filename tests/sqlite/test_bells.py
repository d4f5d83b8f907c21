"""Processes that share a file ring each other when there is something for readers."""

from __future__ import annotations

import asyncio
from pathlib import Path

from outlive._platform import open_bell
from outlive._store.sqlite.bells import IDS_MAX, Bells


async def heard(bells: list[str], *wanted: str) -> None:
    """Return when exactly these ids were heard."""
    async with asyncio.timeout(10):
        while bells != list(wanted):  # noqa: ASYNC110
            await asyncio.sleep(0.001)


async def test_ring_is_heard_by_all_other_processes(tmp_path: Path) -> None:
    """Each id once, but not by the one that rings; many at once are one ring for all runs."""
    rings: list[list[str]] = [[], [], []]
    bells = [Bells(tmp_path / "bells") for _ in rings]
    assert [bell.listen(ring.append) for bell, ring in zip(bells, rings, strict=True)] == [True] * 3

    bells[0].ring(["a", "b", "a"])
    await heard(rings[1], "a", "b")
    await heard(rings[2], "a", "b")
    bells[1].ring([str(number) for number in range(IDS_MAX + 1)])
    await heard(rings[0], "")

    for bell in bells:
        bell.close()
    assert not (tmp_path / "bells").exists()


async def test_bell_of_a_killed_process_is_removed(tmp_path: Path) -> None:
    """By the first ring that finds no listener; without any listener a ring is nothing."""
    ringer = Bells(tmp_path / "bells")
    ringer.ring(["a"])
    (tmp_path / "bells").mkdir()
    open_bell(tmp_path / "bells" / "dead").close()

    ringer.ring(["a"])

    assert list((tmp_path / "bells").iterdir()) == []


async def test_path_that_is_too_long_for_a_bell_is_no_error(tmp_path: Path) -> None:
    """Readers look by themselves then, and nothing is left behind."""
    folder = tmp_path / ("x" * 120)
    bells = Bells(folder)

    assert bells.listen(lambda run_id: None) is False

    bells.close()
    assert not folder.exists()
