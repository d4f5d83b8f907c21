"""Everything that is known when a trial is over: what was promised, what the ledgers say, what the processes used."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import msgspec

from proof.live.watch import Sample, StoreSize


class Order(msgspec.Struct):
    """One order, as its customer knows it."""

    number: str
    customer: str
    cents: int
    asked_at: float
    accepted_at: float | None = None
    """When it was answered with 202; None for one whose customer went away before."""
    cancelled_at: float | None = None
    """When its customer began to cancel it."""


class Decision(msgspec.Struct):
    """The decision that counts, as a person was answered."""

    run: str
    request: str
    approved: bool
    by: str


class End(msgspec.Struct):
    """How a run has ended."""

    workflow: str
    status: str
    result: Any = None
    reason: str = ""
    """The type of its failure, or why it was cancelled."""


class Timing(msgspec.Struct):
    """How long something took for whom."""

    role: str
    at: float
    seconds: float
    is_fine: bool
    pid: int = 0
    """The process that was asked; 0 if any may have done it."""


class Invoice(msgspec.Struct):
    """A row of the application's invoices."""

    number: str
    cents: int
    status: str
    charge: str | None


class Burst(msgspec.Struct):
    """Many orders of one customer at once, and one of another customer behind them."""

    numbers: list[str]
    neighbour: str


@dataclass
class Evidence:
    """What is compared at the end."""

    began_at: float = 0.0
    ended_at: float = 0.0
    close_seconds: int = 5

    # What was promised.
    orders: dict[str, Order] = field(default_factory=dict)
    decisions: list[Decision] = field(default_factory=list)
    bursts: list[Burst] = field(default_factory=list)
    imports: dict[str, list[int]] = field(default_factory=dict)
    letters: list[str] = field(default_factory=list)
    probed: list[str] = field(default_factory=list)
    """Ids of the events of probes that were taken."""

    # What the store and the tables of the application say.
    ends: dict[str, End] = field(default_factory=dict)
    still_open: dict[str, str] = field(default_factory=dict)
    """Runs that are open at the end, and what they wait for."""
    invoices: list[Invoice] = field(default_factory=list)
    checkout_began_at: dict[str, float] = field(default_factory=dict)
    """When the row of an invoice was written, by its number."""
    stock: Counter[str] = field(default_factory=Counter)
    """Items that are taken, by the number of the invoice."""
    bookings: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How often each event of a number is booked."""
    ticks: list[float] = field(default_factory=list)
    imported: list[tuple[str, int, int]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """What `outlive fsck` finds."""

    # What the ledgers outside say.
    bank: list[dict[str, Any]] = field(default_factory=list)
    mails: list[dict[str, Any]] = field(default_factory=list)

    # What was seen of the processes.
    samples: list[Sample] = field(default_factory=list)
    sizes: list[StoreSize] = field(default_factory=list)
    pings: list[Timing] = field(default_factory=list)
    probes: list[Timing] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    tracebacks: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    """What went wrong in the world itself."""
    odd_answers: list[str] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    mailer_struck_at: list[float] = field(default_factory=list)
    wanted_faults: frozenset[str] = frozenset()

    stages_read: dict[str, str] = field(default_factory=dict)
    """The last stage that a reader of an order saw before the end, by number."""
    letters_read: dict[str, str] = field(default_factory=dict)
    """What a reader of a letter was sent until its end, by number."""

    # What happened besides.
    repeated: int = 0
    readers_ended: int = 0
    readers_cut: int = 0
    dashboard_events: int = 0
    overviews: int = 0
    deleted: int = 0
    began_without_store: int = 0
    stop_seconds: list[float] = field(default_factory=list)

    def to_json(self) -> bytes:
        """Everything, for who looks at a trial that failed."""
        bookings = [[event, number, times] for (event, number), times in self.bookings.items()]
        return msgspec.json.encode({**vars(self), "bookings": bookings})
