"""What must hold after a trial. Each check is a function from the evidence to its complaints; none means that it holds.

They compare what was promised with the ledgers of the bank and the mailer and with the tables of the application, and
share no code with any of these. A test doctors the evidence for each of them (`tests/live/test_checks.py`).
"""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from proof.live.evidence import Decision, Evidence, Invoice
from proof.live.growth import GROWTH_CHECKS
from proof.live.trial import MAILS_PER_SECOND

CREDIT_CENTS = 100_000
BEFORE_NEIGHBOUR_MAX = 0.8
MAIL_WINDOW_SECONDS, MAILER_SETTLES_SECONDS = 5.0, 15.0
MAILS_LATE_MAX = 10
"""Mails of workers that were frozen between the limit and the mailer."""
TICK_LATE_SECONDS = 60.0
"""The last tick may be so old at the end: the fleet is stopped before everything is read."""
ORDERS_PER_MINUTE_MIN = 10.0
FAILURES = {"DeclinedError", "CreditRefusedError", "TimeoutError", "ApprovalExpiredError"}
"""How a checkout may fail; these are answers of the world, and no failures of the engine."""


def no_process_ended_by_itself(it: Evidence) -> Iterator[str]:
    """Every process ended because it was killed or asked to stop, and nothing surprised it."""
    yield from it.lost
    yield from it.tracebacks


def the_world_got_sensible_answers(it: Evidence) -> Iterator[str]:
    """Every answer was the wanted one, or 503 while the store was away."""
    yield from it.broken
    yield from it.odd_answers


def every_run_ended(it: Evidence) -> Iterator[str]:
    """No run is stuck: all have ended."""
    for run, why in sorted(it.still_open.items()):
        yield f"{run} is open: {why}"


def accepted_orders_ended(it: Evidence) -> Iterator[str]:
    """Every order that was accepted has ended, and in a way that the world explains."""
    for number, order in it.orders.items():
        end = it.ends.get(f"invoice-{number}")
        if end is None:
            if order.accepted_at is not None:
                yield f"order {number} was accepted and has no run"
        elif end.status == "cancelled" and order.cancelled_at is None:
            yield f"order {number} was cancelled, and not by its customer"
        elif end.status == "failed" and end.reason not in FAILURES:
            yield f"order {number} failed with {end.reason}"
        elif end.status == "timed_out":
            yield f"order {number} has timed out"


def nothing_was_charged_twice(it: Evidence) -> Iterator[str]:
    """No invoice was charged twice, and none for another amount than was ordered."""
    for number, charged in charges_of(it).items():
        if len(charged) > 1:
            yield f"{number} was charged {len(charged)} times"
        order = it.orders.get(number)
        if order is None:
            yield f"{number} was charged and never ordered"
        elif charged[0]["cents"] != order.cents:
            yield f"{number} was charged {charged[0]['cents']} cents and not {order.cents}"


def paid_invoices_are_paid_everywhere(it: Evidence) -> Iterator[str]:
    """An order that succeeded is charged once and for good, paid in the tables, out of stock, and has its receipt."""
    charges, rows, cancelled = charges_of(it), rows_of(it), cancelled_at_the_bank(it)
    receipts = Counter(mail["number"] for mail in it.mails if mail["kind"] == "receipt")
    for number in numbers(it, "succeeded"):
        result = it.ends[f"invoice-{number}"].result or {}
        charged = [charge["charge"] for charge in charges[number]]
        if charged != [result.get("charge")]:
            yield f"{number} has succeeded with {result.get('charge')}, and the bank has charged {charged}"
        if number in cancelled:
            yield f"{number} has succeeded, and the bank has given its money back"
        wanted = [Invoice(number=number, cents=result.get("cents", 0), status="paid", charge=result.get("charge"))]
        if rows[number] != wanted:
            yield f"{number} has the result {result}, and in the tables it is {rows[number]}"
        if it.stock[number] != 1:
            yield f"{number} is paid, and {it.stock[number]} items are taken for it"
        if not receipts[number]:
            yield f"{number} is paid and has no receipt"


def failed_checkouts_are_undone(it: Evidence) -> Iterator[str]:
    """An order that failed or was cancelled has left nothing: no money, no item, no receipt, no open invoice."""
    charges, rows, cancelled = charges_of(it), rows_of(it), cancelled_at_the_bank(it)
    receipts = {mail["number"] for mail in it.mails if mail["kind"] == "receipt"}
    for number in numbers(it, "failed", "cancelled"):
        taken = sum(charge["cents"] for charge in charges[number])
        if taken and cancelled.get(number) != taken:
            yield f"{number} is undone, and the bank has given back {cancelled.get(number)} of {taken} cents"
        if [row.status for row in rows[number]] not in ([], ["void"]):
            yield f"{number} is undone, and in the tables it is {rows[number]}"
        if it.stock[number] != 0:
            yield f"{number} is undone, and {it.stock[number]} items are taken for it"
        if number in receipts:
            yield f"{number} is undone and has a receipt"


def nothing_was_invented(it: Evidence) -> Iterator[str]:
    """Every row, charge and mail belongs to an order or a letter that the world has asked for."""
    known = {f"invoice-{number}" for number in it.orders if f"invoice-{number}" in it.ends}
    for what, found in (
        ("a row", {row.number for row in it.invoices}),
        ("an item", {number for number, count in it.stock.items() if count}),
        ("a receipt", {mail["number"] for mail in it.mails if mail["kind"] == "receipt"}),
    ):
        for number in sorted(found):
            if f"invoice-{number}" not in known:
                yield f"{number} has {what} and no run"


def accepted_webhooks_are_booked_once(it: Evidence) -> Iterator[str]:
    """Each webhook that was accepted is booked once, however often it was sent; so is each probe."""
    charges = {charge["charge"]: number for number, all_of in charges_of(it).items() for charge in all_of}
    accepted = {(entry["event"], entry["number"]) for entry in it.bank if entry["kind"] == "heard"}
    for event, number in sorted(accepted):
        if (event, number) not in it.bookings:
            yield f"the bank's {event} of {number} was accepted and is not booked"
    booked = {event for event, _ in it.bookings}
    for event in it.probed:
        if event not in booked:
            yield f"{event} was accepted and is not booked"
    for (event, number), times in it.bookings.items():
        if times > 1:
            yield f"{event} of {number} is booked {times} times"
        if not event.startswith("probe-") and charges.get(event.removeprefix("evt-")) != number:
            yield f"{event} of {number} is booked, and the bank knows no such charge"


def approvals_are_honoured(it: Evidence) -> Iterator[str]:
    """All who decide are answered with the same decision, and the run does what it says."""
    first: dict[tuple[str, str], Decision] = {}
    for decision in it.decisions:
        other = first.setdefault((decision.run, decision.request), decision)
        if (other.approved, other.by) != (decision.approved, decision.by):
            yield f"{decision.run}: one was answered that {other.by} decided, another that {decision.by} did"
    decisions = {decision.run: decision for decision in it.decisions}
    for number, order in it.orders.items():
        end, decided = it.ends.get(f"invoice-{number}"), decisions.get(f"invoice-{number}")
        if end is None or order.cents < CREDIT_CENTS:
            continue
        if end.status == "succeeded" and (decided is None or not decided.approved):
            yield f"{number} has credit that no person gave"
        if end.status == "succeeded" and decided is not None and end.result.get("credit_by") != decided.by:
            yield f"{number} has credit by {end.result.get('credit_by')}, and {decided.by} decided"
        if end.reason == "CreditRefusedError" and (decided is None or decided.approved):
            yield f"{number} was refused credit by no person"
    yield from _letters(it)


def _letters(it: Evidence) -> Iterator[str]:
    sent = Counter(mail["number"] for mail in it.mails if mail["kind"] == "letter")
    decided = {decision.run: decision for decision in it.decisions}
    for number in it.letters:
        decision, end = decided.get(f"letter-{number}"), it.ends.get(f"letter-{number}")
        if end is None or end.status != "succeeded":
            yield f"the letter {number} was accepted and ended as {end}"
        elif decision is None:
            yield f"the letter {number} has ended without a decision"
        elif decision.approved != (sent[number] > 0):
            yield f"the letter {number} was {'' if decision.approved else 'not '}approved and sent {sent[number]} times"


def readers_saw_it_all(it: Evidence) -> Iterator[str]:
    """Who read to the end saw the last stage of the order, and the whole letter, however often the connection broke."""
    for number, stage in it.stages_read.items():
        end = it.ends.get(f"invoice-{number}")
        if end is not None and end.status == "succeeded" and stage != "done":
            yield f"{number} is paid, and who followed it saw {stage!r} as the last"
    for number, words in it.letters_read.items():
        end = it.ends.get(f"letter-{number}")
        # What an agent had written when it was killed stands before it.
        if end is not None and end.status == "succeeded" and not words.endswith(end.result):
            yield f"who read the letter {number} saw {words!r}, and its run says {end.result!r}"
    read = {
        "progress": it.stages_read,
        "letter": it.letters_read,
        "dashboard": it.dashboard_events,
        "overview": it.overviews,
    }
    yield from (f"nothing was read of any {what}" for what, found in read.items() if not found)


def no_customer_waits_for_a_burst_of_another(it: Evidence) -> Iterator[str]:
    """Who orders behind a burst of another customer is not the last to be served."""
    shares = bursts_before_neighbours(it)
    if not shares:
        yield "there was no burst of orders"
    elif (typical := statistics.median(shares)) > BEFORE_NEIGHBOUR_MAX:
        yield f"of the orders of a greedy customer {typical:.0%} begin before the one behind them"


def the_mailer_gets_no_more_than_it_takes(it: Evidence) -> Iterator[str]:
    """All workers together send no more mails than the rate limit allows."""
    most = MAILS_PER_SECOND * (MAIL_WINDOW_SECONDS + 1) + MAILS_LATE_MAX
    if (seen := mails_at_most(it)) > most:
        yield f"{seen} mails came within {MAIL_WINDOW_SECONDS:.0f} s, and {most:.0f} are allowed"


def imports_are_whole(it: Evidence) -> Iterator[str]:
    """Every line of every file that was accepted is imported once; those with a negative amount are not."""
    found: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for file, line, cents in it.imported:
        found[file].append((line, cents))
    for file, amounts in it.imports.items():
        wanted = [(line, cents) for line, cents in enumerate(amounts) if cents >= 0]
        if sorted(found[file]) != wanted:
            yield f"of file {file} {len(found[file])} lines are imported, and {len(wanted)} should be"


def no_tick_is_missing_or_doubled(it: Evidence) -> Iterator[str]:
    """The books were closed once for each tick, also for those that passed while nothing ran."""
    ticks = sorted(it.ticks)
    if len(ticks) < 2:
        yield "the books were hardly ever closed"
        return
    for tick, later in pairwise(ticks):
        if later - tick != it.close_seconds:
            yield f"after the tick {tick:.0f} comes {later:.0f}, and not {tick + it.close_seconds:.0f}"
    if it.ended_at - ticks[-1] > TICK_LATE_SECONDS:
        yield f"the last tick is {it.ended_at - ticks[-1]:.0f} s old"


def the_store_is_whole(it: Evidence) -> Iterator[str]:
    """`outlive fsck` finds nothing."""
    yield from it.problems


def enough_was_done(it: Evidence) -> Iterator[str]:
    """There were orders all the time, and no fault is missing."""
    minutes = (it.ended_at - it.began_at) / 60
    paid = len(numbers(it, "succeeded"))
    if paid < ORDERS_PER_MINUTE_MIN * minutes:
        yield f"only {paid} orders were paid in {minutes:.1f} minutes"
    if missing := it.wanted_faults - {kind for kind, times in it.faults.items() if times}:
        yield f"these faults are missing: {', '.join(sorted(missing))}"
    for what, found in (("letters", it.letters), ("imports", it.imports), ("decisions", it.decisions)):
        if not found:
            yield f"there were no {what}"


def bursts_before_neighbours(it: Evidence) -> list[float]:
    """Of each burst, the share that began before the order of another customer behind it."""
    began, shares = it.checkout_began_at, []
    for burst in it.bursts:
        neighbour_at = began.get(burst.neighbour)
        those = [began[number] for number in burst.numbers if number in began]
        if neighbour_at is not None and those:
            shares.append(sum(at < neighbour_at for at in those) / len(those))
    return shares


def mails_at_most(it: Evidence) -> int:
    """The most mails that came within a window. What a struck mailer had not read comes at once when it is back, so
    windows behind a strike are left out."""
    sent, most, first = sorted(mail["at"] for mail in it.mails), 0, 0
    for number, at in enumerate(sent):
        while at - sent[first] > MAIL_WINDOW_SECONDS:
            first += 1
        begins, ends = sent[first] - MAILER_SETTLES_SECONDS, at
        if not any(begins <= struck_at <= ends for struck_at in it.mailer_struck_at):
            most = max(most, number - first + 1)
    return most


def charges_of(it: Evidence) -> defaultdict[str, list[dict[str, Any]]]:
    """What the bank has charged, by the number of the invoice."""
    found: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for entry in it.bank:
        if entry["kind"] == "charge":
            found[entry["number"]].append(entry)
    return found


def cancelled_at_the_bank(it: Evidence) -> dict[str, int]:
    """How much the bank has given back of which invoice."""
    return {entry["number"]: entry["cents"] for entry in it.bank if entry["kind"] == "cancellation"}


def rows_of(it: Evidence) -> defaultdict[str, list[Invoice]]:
    """The invoices of the tables, by their number."""
    found: defaultdict[str, list[Invoice]] = defaultdict(list)
    for row in it.invoices:
        found[row.number].append(row)
    return found


def numbers(it: Evidence, *statuses: str) -> list[str]:
    """The orders whose runs have ended so."""
    return [number for number in it.orders if (end := it.ends.get(f"invoice-{number}")) and end.status in statuses]


CHECKS = (
    no_process_ended_by_itself,
    the_world_got_sensible_answers,
    every_run_ended,
    accepted_orders_ended,
    nothing_was_charged_twice,
    paid_invoices_are_paid_everywhere,
    failed_checkouts_are_undone,
    nothing_was_invented,
    accepted_webhooks_are_booked_once,
    approvals_are_honoured,
    readers_saw_it_all,
    no_customer_waits_for_a_burst_of_another,
    the_mailer_gets_no_more_than_it_takes,
    imports_are_whole,
    no_tick_is_missing_or_doubled,
    the_store_is_whole,
    enough_was_done,
    *GROWTH_CHECKS,
)
