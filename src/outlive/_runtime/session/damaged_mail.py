"""What can still be known of messages whose rows in the inbox are damaged.

The key of a message says of what kind it is and, of one about the end of a run, which run that is: the row of that run
says how it ended. Such a message comes once. If it were lost, the tree that it is for would wait for ever.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from msgspec.structs import replace

from outlive._model import Run
from outlive._store.contract import Ended, Inbound, MessageKind
from outlive.client.message_key import ended_in, kind_in

FindRuns = Callable[[Sequence[str]], Awaitable[Mapping[str, Run]]]


async def read_damaged(mail: Mapping[int, list[Inbound]], find_runs: FindRuns) -> dict[int, list[Inbound]]:
    """These messages by journal, with what their keys say of those that are damaged."""
    found = {journal: [_known(message) for message in messages] for journal, messages in mail.items()}
    ends = {ended_in(message.key) for messages in found.values() for message in messages if _is_lost_end(message)}
    runs = {id: run for id, run in (await find_runs(sorted(ends))).items() if run.status.is_terminal} if ends else {}
    return {journal: [_completed(message, runs) for message in messages] for journal, messages in found.items()}


def _known(message: Inbound) -> Inbound:
    return replace(message, kind=kind_in(message.key) or message.kind) if message.fault else message


def _is_lost_end(message: Inbound) -> bool:
    return bool(message.fault) and message.kind is MessageKind.ENDED


def _completed(message: Inbound, runs: Mapping[str, Run]) -> Inbound:
    run = runs.get(ended_in(message.key)) if _is_lost_end(message) else None
    if run is None:
        return message
    return replace(message, ended=Ended(run.id, run.status, result=run.result, failure=run.failure), fault="")
