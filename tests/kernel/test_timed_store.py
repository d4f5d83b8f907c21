"""A store as callers use it: what an error says of a verb that got no answer, and whose searches take turns."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from outlive._kernel.client.timed_store import NAMED_MAX, TimedStore, searching
from outlive._kernel.model import RunFilter
from outlive._kernel.store.pending_write import PENDING_WRITE
from outlive.errors import CommitUnknownError, EngineClosedError, StoreUnavailableError

SECONDS = 3.0


def change_of(*run_ids: str) -> Any:
    """A change of a tree."""
    return SimpleNamespace(runs=[SimpleNamespace(root_id=run_id, id=run_id) for run_id in run_ids])


def message_to(run_id: str) -> Any:
    """A message."""
    return SimpleNamespace(run_id=run_id)


class Silent:
    """A store that begins a write, or has it in line, and gives no answer."""

    is_begun = True

    def now(self) -> int:
        """See `Store`."""
        return 0

    async def _nothing(self, *_: Any, **__: Any) -> Any:
        write = PENDING_WRITE.get()
        if write is not None:
            write.wait()
            if self.is_begun:
                write.begin()
        await asyncio.get_running_loop().create_future()

    append_checkpoint = change_cell = change_schedules = clear_checkpoints = commit = deliver = _nothing
    request_message = request_start = find_run = list_runs = count_runs = count_groups = begin = _nothing


WRITES: dict[str, tuple[tuple[Any, ...], str, str]] = {
    "append_checkpoint": (("o", (7, b"")), "for checkpoint 7 of o", "o"),
    "clear_checkpoints": (("o",), "for the checkpoints of o", "o"),
    "change_cell": (("limits", None), "for the cell limits", ""),
    "change_schedules": (
        ([SimpleNamespace(name="a"), SimpleNamespace(name="b")],),
        "for the schedule a, the schedule b",
        "",
    ),
    "commit": (([change_of("o", "o.1"), change_of()],), "for o", "o"),
    "deliver": (([message_to("o"), message_to("p"), message_to("o")],), "for o, p", ""),
    "request_message": ((None, message_to("o")), "for o", "o"),
    "request_start": ((None, change_of("o", "o.1")), "for o", "o"),
}


@pytest.mark.parametrize("name", WRITES)
async def test_write_without_an_answer_names_what_it_is_about(name: str) -> None:
    """A write that the store had not begun was not written. Of one that it has begun nothing is known, and the error
    names the run, if it is about one."""
    args, about, run_id = WRITES[name]
    store: Any = Silent()
    with pytest.raises(CommitUnknownError) as caught:
        await getattr(TimedStore(store, seconds=0.0), name)(*args)
    assert f"not known whether what was asked of it {about} was written; repeat the call" in str(caught.value)
    assert (caught.value.place, caught.value.run_id) == ("the store", run_id)

    store.is_begun = False
    with pytest.raises(StoreUnavailableError) as refused:
        await getattr(TimedStore(store, seconds=0.0), name)(*args)
    assert type(refused.value) is StoreUnavailableError
    assert str(refused.value).endswith(f"it has not answered for 0 s; what was asked of it {about} was not written")
    assert PENDING_WRITE.get() is None


@pytest.mark.parametrize("more", [0, 1, 3])
async def test_error_names_five_things_and_counts_the_others(more: int) -> None:
    """A batch of a thousand messages would be a message of a thousand names."""
    messages = [message_to(f"run-{number}") for number in range(NAMED_MAX + more)]
    with pytest.raises(CommitUnknownError) as caught:
        await TimedStore(Silent(), seconds=0.0).deliver(messages)  # type: ignore[arg-type]
    rest = f" and {more} more" if more else ""
    assert f"for run-0, run-1, run-2, run-3, run-4{rest} was written" in str(caught.value)


async def test_look_without_an_answer_is_refused_and_an_error_of_the_store_is_passed_on() -> None:
    """A look changes nothing, so nothing is in doubt. What a worker waits for has no limit."""
    store: Any = Silent()
    callers = TimedStore(store, seconds=0.0)
    with pytest.raises(StoreUnavailableError, match=r"it has not answered for 0 s$"):
        await callers.find_run("o")
    assert callers.begin == store.begin

    async def fail(*_: Any) -> None:
        raise TimeoutError("of the network")

    store.find_runs = fail
    with pytest.raises(TimeoutError, match="of the network"):
        await TimedStore(store, seconds=30.0).find_runs(["o"])


class Found(Silent):
    """A store that answers every search at once."""

    async def list_runs(self, *_: Any, **options: Any) -> Any:
        """See `Store`."""
        return ("list", options)

    async def count_runs(self, *_: Any, **options: Any) -> Any:
        """See `Store`."""
        return ("count", options)

    async def count_groups(self, *_: Any, **options: Any) -> Any:
        """See `Store`."""
        return ("groups", options)


async def test_searches_take_turns_and_looks_at_known_runs_do_not() -> None:
    """A search whose turn comes when the engine has stopped is refused."""
    store: Any = Found()
    callers: Any = TimedStore(store, seconds=30.0)
    turns: list[str] = []

    async def turn(search: Callable[[], Awaitable[Any]]) -> Any:
        turns.append("turn")
        return await search()

    search, known = RunFilter(workflow="order"), RunFilter(ids=("o",))
    assert search.is_search
    assert not known.is_search
    with searching(turn):
        assert await callers.list_runs(search, limit=3) == ("list", {"limit": 3})
        assert await callers.count_runs(search, limit=4) == ("count", {"limit": 4})
        groups: Any = await callers.count_groups(search, "status", limit=5, groups_max=6)
        assert groups == ("groups", {"limit": 5, "groups_max": 6})
        assert len(turns) == 3
        assert await callers.list_runs(known, limit=3) == ("list", {"limit": 3})
        callers.end_searches()
        with pytest.raises(EngineClosedError):
            await callers.count_runs(search, limit=4)
        assert len(turns) == 4
        assert await callers.count_runs(known, limit=4) == ("count", {"limit": 4})
    assert await callers.count_runs(search, limit=4) == ("count", {"limit": 4})
