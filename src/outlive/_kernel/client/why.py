"""One sentence for every run that has not ended: what it waits for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from outlive._kernel.model import Run, RunStatus, Wait, WaitKind, child_id
from outlive._kernel.model.instant import instant_of
from outlive._kernel.model.lacking import lacking_in
from outlive._kernel.model.pause import PAUSED, Pauses, pause_of
from outlive._kernel.model.queue import DEFAULT
from outlive._kernel.model.remote import remote_step_of
from outlive._kernel.model.wait import for_people
from outlive._kernel.model.why import Why
from outlive._kernel.model.worker import name_in, taken_queues
from outlive._kernel.replay.frame import APPROVAL
from outlive._kernel.store.contract import WorkerInfo
from outlive._kernel.values.run import wait_of
from outlive.errors.advice import Advice

WAITS_SHOWN_MAX = 4
LACKING_SHOWN_MAX = 3
NO_RUNS: Mapping[str, Run] = MappingProxyType({})
NO_PAUSES: Pauses = MappingProxyType({})
APPROVAL_MARK = f"{APPROVAL}/"
SENT = (WaitKind.SIGNAL, WaitKind.ASK, WaitKind.APPROVAL)
"""The kinds of waits for something that is sent to one run of a tree, by its id: its parent does not take it in its
place."""


def why(
    run: Run,
    root: Run,
    workers: list[WorkerInfo],
    others: Mapping[str, Run] = NO_RUNS,
    *,
    now_at: int,
    pauses: Pauses = NO_PAUSES,
    line: str = "",
    other_line: str = "",
    doing: str = "",
    unknown_queue: str = "",
) -> Why:
    """Why a run is where it is, for a person, and what helps; `others` are the runs that it waits for, `pauses` the
    workflows that are paused, `line` what is to be said of its position in a queue, `other_line` of that of a run that
    it waits for, `doing` what its worker has said that is under way, and `unknown_queue` what is to be said of a queue
    that no code has declared."""
    if run.status.is_terminal:
        return Why(_ended(run))
    if run.status is RunStatus.DAMAGED:
        return Why(run.reason)
    if root.status is RunStatus.DAMAGED:
        return Why(f"it hangs on run {root.id}: {root.reason}")
    live = {worker.id: worker for worker in workers if worker.is_live}
    is_due = root.wake_at is not None and root.wake_at <= now_at
    if root.status is RunStatus.PARKED:
        if is_due and not has_definition(live.values(), root):
            # A person has resumed it: the advice to resume it would not help.
            return Why(f"it is to go on, and {_undefined(live.values(), root)}")
        if is_paused(root):
            advice = Advice("resume", {"run_id": root.id}, "lets it go on")
            return Why(f"it is {root.reason} (since {instant(root.updated_at)})", advice)
        return Why(f"it is parked: {root.reason}")
    if (pause := pause_of(pauses, root.workflow)) is not None:
        paused = {"workflow": root.workflow} if root.workflow in pauses else {"all": True}
        now = f"; now it is {doing}" if doing and root.owner in live else ""
        advice = Advice("resume", paused, "lets it go on")
        return Why(f"its workflow is {pause} (since {instant(pause.at)}){now}", advice)
    if (step := remote_step_of(root.workflow)) and root.owner not in live:
        return Why(_unclaimed(root, step))
    if is_due and root.owner not in live and is_untaken(live.values(), root):
        return Why.of(_untaken(root), unknown_queue and f"; {unknown_queue}", _until(root))
    if line and has_definition(live.values(), root):
        return Why.of(line, _until(root))
    if root.status is RunStatus.PENDING and not root.owner and root.wake_at is not None and root.wake_at > now_at:
        return Why(f"it is to begin at {instant(root.wake_at)}" + _until(root))
    if root.status is RunStatus.WAITING and not (is_due and not has_definition(live.values(), root)):
        return Why.of("it waits for ", _waits(run, root, others), "; " if other_line else "", other_line)
    worker = name_in(root.owner)
    if root.owner in live:
        return Why(f"it is {doing}" if doing else f"worker {worker} runs it")
    if not has_definition(live.values(), root):
        gone = f"its worker {worker} is gone{_interrupted(doing)} and " if root.owner else ""
        return Why(gone + _undefined(live.values(), root) + _until(root))
    if root.reason:
        return Why(root.reason)
    if root.owner:
        gone = f"its worker {worker} is gone{_interrupted(doing)}"
        return Why(f"{gone}; another one that has {root.definition_shown} will take it over")
    return Why("a worker will take it as soon as one has room")


def _interrupted(doing: str) -> str:
    """A clause about the work of a worker that is gone, as far as it had reported it."""
    return f", when it was {doing}," if doing else ""


def _until(root: Run) -> str:
    """A clause that says when a run fails if no worker begins it."""
    return "" if root.begin_by is None else f"; it fails if no worker has begun it by {instant(root.begin_by)}"


def _unclaimed(task: Run, step: str) -> str:
    """The sentence for a task on which no program outside works now."""
    queue = task.queue or DEFAULT
    if task.owner:
        return f"the lease of its remote worker has run out; the next one of queue {queue} for step {step} gets it"
    return f"it waits for a remote worker of queue {queue} to claim step {step}"


def is_stopped(root: Run) -> bool:
    """Whether a run is parked, and no person has let it go on since: then it is due, and a worker will take it. One
    whose row is damaged is stopped too: no worker takes it."""
    is_parked = root.status is RunStatus.PARKED and root.wake_at is None and not is_paused(root)
    return root.status is RunStatus.DAMAGED or is_parked


def is_paused(root: Run) -> bool:
    """Whether a person has paused a run: it has not failed in anything, and its callers wait on."""
    return root.status is RunStatus.PARKED and root.reason.startswith(PAUSED)


def has_definition(workers: Iterable[WorkerInfo], root: Run) -> bool:
    """Whether one of these workers has the workflow of a run, in its version."""
    return any(root.definition in worker.definitions for worker in workers)


def is_untaken(workers: Iterable[WorkerInfo], root: Run) -> bool:
    """Whether workers have the workflow of a run, and none of these takes runs from its queue."""
    takes = [taken_queues(worker.definitions) for worker in workers if root.definition in worker.definitions]
    name = root.queue or DEFAULT
    return bool(takes) and not any(queues is None or name in queues for queues in takes)


def _untaken(root: Run) -> str:
    """The sentence for a run that workers could run and do not take."""
    whose = f"from queue {root.queue}, in which it is" if root.queue else "runs without a queue, as it is"
    return (
        f"no live worker that has {root.definition_shown} takes {whose}; start one with --queues "
        f"{root.queue or DEFAULT}, or without --queues"
    )


def _undefined(workers: Iterable[WorkerInfo], root: Run) -> str:
    """The sentence for a run that no live worker can run, with the steps that workers lack for it."""
    lacks = {worker.name: lacking_in(worker.definitions, root.definition) for worker in workers}
    found = [f"worker {name} lacks {', '.join(names)}" for name, names in sorted(lacks.items()) if names]
    if not found:
        return f"no live worker has {root.definition_shown}; start one that defines it"
    more = f" and {len(found) - LACKING_SHOWN_MAX} more" if len(found) > LACKING_SHOWN_MAX else ""
    shown = "; ".join(found[:LACKING_SHOWN_MAX])
    return f"no live worker has all steps of flow {root.definition_shown}: {shown}{more}; start one that has them"


def _ended(run: Run) -> str:
    ended = f"it ended {instant(run.finished_at or run.updated_at)}: {run.status.value.replace('_', ' ')}"
    if run.failure is not None:
        return f"{ended}: {run.failure.type}: {run.failure.message}"
    return f"{ended} ({run.reason})" if run.reason else ended


def _waits(run: Run, root: Run, others: Mapping[str, Run]) -> str:
    # The timers of an approval that waits are its own business: it says itself until when.
    own = [wait for wait in root.waits if wait.kind is not WaitKind.TIMER or APPROVAL_MARK not in wait.name]
    waits = for_people(own)
    shown = [wait_shown(wait, others) + _receiver(wait, run, root) for wait in waits[:WAITS_SHOWN_MAX]]
    if len(waits) > WAITS_SHOWN_MAX:
        shown.append(f"{len(waits) - WAITS_SHOWN_MAX} more")
    return " or ".join(shown)


def _receiver(wait: Wait, run: Run, root: Run) -> str:
    """Which run of the tree has to be sent what it waits for, if it is another one."""
    if wait.kind not in SENT or wait.run == run.number:
        return ""
    return f" for run {child_id(root.id, wait.run)}"


def wait_shown(wait: Wait, others: Mapping[str, Run] = NO_RUNS) -> str:
    """One thing that a run waits for: its kind, its name, and what else is known of it."""
    other = others.get(wait.name) if wait.kind is WaitKind.CHILD else None
    if other is None:
        return wait_of(wait, "").describe()
    if is_stopped(other):
        return f"run {wait.name}, which is parked: {other.reason}"
    if is_paused(other):
        return f"run {wait.name}, which is {other.reason}"
    if step := remote_step_of(other.workflow):
        what = f", which has claimed step {step}" if other.owner else f" to claim step {step}"
        return f"a remote worker of queue {other.queue or DEFAULT}{what} (task {other.id})"
    return f"run {wait.name}"


def instant(at: int) -> str:
    """An instant for people."""
    return instant_of(at).isoformat(timespec="seconds")
