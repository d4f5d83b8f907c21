"""Waiting for what a run is to come to: a status, or a field that it publishes, in time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from outlive._kernel.client.access import Access
from outlive._kernel.client.followers import Followers
from outlive._kernel.client.streams import LOOK_SECONDS, LookRest
from outlive._kernel.model import Run, RunStatus
from outlive._tasks import within
from outlive.errors import OutliveError, ResultTimeoutError, RunFinishedError

T = TypeVar("T")


async def in_time(
    work: Coroutine[Any, Any, T],
    run_id: str,
    seconds: float | None,
    *,
    what: str,
    why: Callable[[], Awaitable[str]],
) -> T:
    """The result of this work, if it comes in time.

    Raises:
        ResultTimeoutError: it has taken longer; says `what` the run has not done, and `why`.
    """
    if seconds is None:
        return await work
    try:
        return await within(seconds, work)
    except TimeoutError as error:
        if isinstance(error, OutliveError):
            raise
        raise ResultTimeoutError(run_id, seconds, await why(), what=what) from None


async def has_status(
    access: Access,
    followers: Followers,
    run_id: str,
    wanted: RunStatus,
    *,
    rest: LookRest,
    settle: Callable[[], Awaitable[None]],
) -> Run:
    """A run once it has this status.

    Raises:
        RunFinishedError: it has ended otherwise.
    """
    with followers.following(run_id) as bell:
        while True:
            bell.clear()
            await settle()
            run = await access.info(run_id)
            if run.status is wanted:
                return run
            if run.status.is_terminal:
                raise RunFinishedError(run_id, run.status.value, f"and will not be {wanted.value} any more")
            await rest(bell, LOOK_SECONDS)


async def has_published(
    shown: AsyncIterator[dict[str, Any]], field: str, run_id: str, *, status: Callable[[], Awaitable[Run]]
) -> Any:
    """The field of what a run shows, once it is there.

    Raises:
        RunFinishedError: it has ended without.
    """
    async for fields in shown:
        if field in fields:
            return fields[field]
    raise RunFinishedError(run_id, (await status()).status.value, f"and has not published {field!r}")
