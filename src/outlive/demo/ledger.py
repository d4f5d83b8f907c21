"""Was every order right? Three witnesses are heard: the outside world, the journals, and the results.

Each line of the ledger compares what the orders promise with what one can count. An interrupted charge may have been
begun twice: with one idempotency key, so that the bank took the money once. What must never happen is that a step
which the journal knows as done begins again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from outlive._kernel.journal.event import AnyEvent, AttemptFailed, RunClaimed, RunSucceeded, SignalReceived
from outlive.demo.orders import Order, Receipt
from outlive.demo.world import Line
from outlive.testing.completion import completions


@dataclass(frozen=True, slots=True)
class Case:
    """One order, with everything that is known about it."""

    order: Order
    wanted: Receipt
    got: Receipt | str
    """The receipt, or why there is none."""
    events: Sequence[AnyEvent]
    lines: Sequence[Line]


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the ledger."""

    what: str
    wanted: int
    found: int

    @property
    def is_right(self) -> bool:
        """Whether it is as it should be."""
        return self.wanted == self.found


@dataclass(slots=True)
class Ledger:
    """The verdict, and the story of the kill."""

    entries: list[Entry]
    complaints: list[str] = field(default_factory=list)
    """The mistakes, order by order."""
    epilogue: list[str] = field(default_factory=list)
    interrupted: list[str] = field(default_factory=list)
    """The orders that the killed worker was charging."""

    @property
    def is_right(self) -> bool:
        """Whether every line is right and a worker was really killed in the middle of a charge."""
        return all(entry.is_right for entry in self.entries) and not self.complaints

    def __str__(self) -> str:
        width = max(len(entry.what) for entry in self.entries)
        head = f"\n  {'THE LEDGER':<{width}}  {'expected':>9}  {'found':>9}"
        rows = [
            f"  {it.what:<{width}}  {it.wanted:>9,}  {it.found:>9,}  {'ok' if it.is_right else 'WRONG'}"
            for it in self.entries
        ]
        verdict = "Nothing was lost and nothing was done twice." if self.is_right else "THE LEDGER IS WRONG."
        complaints = [f"  - {complaint}" for complaint in self.complaints]
        return "\n".join([head, *rows, "", *self.epilogue, *complaints, verdict])


def audit(cases: Sequence[Case]) -> Ledger:
    """Compare what the orders promise with what was done."""
    orders = [case.order for case in cases]
    steps = sum(len(order.items) + 3 for order in orders)
    return Ledger(
        entries=[
            Entry("orders finished with the right receipt", len(cases), _count(it.got == it.wanted for it in cases)),
            Entry("orders charged exactly once", len(cases), _count(len(_payments(it)) == 1 for it in cases)),
            Entry("cents in the bank", sum(it.cents for it in orders), sum(sum(_payments(it)) for it in cases)),
            Entry("steps finished, each one also in the world", steps, sum(_finished_steps(it) for it in cases)),
            Entry("finished steps that began again", 0, sum(len(began_again(it)) for it in cases)),
            Entry("confirmations taken (some were sent twice)", len(cases), _events(cases, SignalReceived)),
            Entry("busy calls, tried again", sum(it.busy_calls for it in orders), _events(cases, AttemptFailed)),
            Entry("deliveries made by child runs", len(cases), sum(_deliveries(it) for it in cases)),
        ],
        complaints=[complaint for case in cases for complaint in _complaints(case)],
    )


def began_again(case: Case) -> list[Line]:
    """The lines that a worker began although the journal said that they were done, or that one worker began twice."""
    done = {it.key: it for it in completions(case.order.id, case.events)}
    seen: set[tuple[str, int, int]] = set()
    again = []
    for line in case.lines:
        if line.mark == "begin":
            same_attempt = (line.key, line.epoch, line.attempt)
            if same_attempt in seen or (line.key in done and line.epoch > done[line.key].epoch):
                again.append(line)
            seen.add(same_attempt)
    return again


def take_overs(cases: Iterable[Case]) -> int:
    """How many times a worker went on with what a dead one had in its hands."""
    return sum(isinstance(it, RunClaimed) and it.interrupted for case in cases for it in case.events)


def _payments(case: Case) -> list[int]:
    """The bank's statement: what it took, once per idempotency key."""
    return list({it.key: it.cents for it in case.lines if it.what == "charge" and it.mark == "end"}.values())


def _finished_steps(case: Case) -> int:
    """Steps that the journal calls done and that the world saw end: at that claim, in that attempt."""
    ends = {(it.key, it.epoch, it.attempt) for it in case.lines if it.mark == "end"}
    return _count((it.key, it.epoch, it.attempt) in ends for it in completions(case.order.id, case.events))


def _deliveries(case: Case) -> int:
    return _count(isinstance(it, RunSucceeded) and it.run > 0 for it in case.events)


def _events(cases: Iterable[Case], kind: type[AnyEvent]) -> int:
    return _count(isinstance(it, kind) for case in cases for it in case.events)


def _complaints(case: Case) -> list[str]:
    found = [] if case.got == case.wanted else [f"{case.order.id}: got {case.got}, wanted {case.wanted}"]
    found += [f"{case.order.id}: {it.what} ({it.key}) began again in epoch {it.epoch}" for it in began_again(case)]
    if len(_payments(case)) != 1:
        found.append(f"{case.order.id}: the bank has {len(_payments(case))} payments of it")
    return found


def _count(facts: Iterable[bool]) -> int:
    return sum(facts)
