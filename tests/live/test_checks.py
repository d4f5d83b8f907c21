"""Each check of a trial holds on healthy evidence and complains about doctored evidence."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from proof.live.checks import CHECKS
from proof.live.evidence import Burst, Decision, End, Evidence, Invoice, Order, Timing
from proof.live.growth import slope
from proof.live.life import surprises_in
from proof.live.releases import make_releases
from proof.live.report import report
from proof.live.trial import Ports, Trial
from proof.live.watch import Sample, StoreSize

MINUTES = 3
BEGAN = 1_000_000.0
PINGED = (("web-1", 7), ("worker-1", 8), ("agents-1", 9))
Doctor = Callable[[Evidence], None]


@pytest.fixture
def evidence() -> Evidence:
    """A trial in which all went well: 50 paid orders, one declined, one cancelled, one refused, one with credit."""
    it = Evidence(began_at=BEGAN, ended_at=BEGAN + MINUTES * 60)
    for number in range(50):
        sell(it, f"n-{number}")
    sell(it, "credit", cents=200_000, by="ann")
    it.decisions += [Decision(run="invoice-credit", request="r-1", approved=True, by="ann")] * 2
    undo(it, "refused", cents=200_000, reason="CreditRefusedError")
    it.decisions.append(Decision(run="invoice-refused", request="r-2", approved=False, by="bob"))
    undo(it, "poor", reason="DeclinedError")
    undo(it, "cancelled", charge="ch-cancelled", status="cancelled", reason="the customer has cancelled")
    it.orders["cancelled"].cancelled_at = BEGAN + 2
    for letter, approved in (("yes", True), ("no", False)):
        it.letters.append(letter)
        it.ends[f"letter-{letter}"] = End(workflow="write_letter", status="succeeded", result="done")
        it.decisions.append(Decision(run=f"letter-{letter}", request=f"l-{letter}", approved=approved, by="ann"))
    it.mails.append({"kind": "letter", "number": "yes", "at": BEGAN})
    it.letters_read["yes"] = "half of donedone"
    it.stages_read |= {"n-1": "done", "poor": "recorded"}
    it.dashboard_events = it.overviews = 1
    burst = [f"burst-{number}" for number in range(10)]
    for place, ordered in enumerate([*burst[:3], "neighbour", *burst[3:]]):
        sell(it, ordered)
        it.checkout_began_at[ordered] = BEGAN + place
    it.bursts.append(Burst(numbers=burst, neighbour="neighbour"))
    it.imports["old"] = [5, -1, 7]
    it.imported = [("old", 0, 5), ("old", 2, 7)]
    it.ticks = [BEGAN + 5 * number for number in range(MINUTES * 12)]
    it.probed.append("probe-1")
    it.bookings["probe-1", "probe"] = 1
    it.samples = [sample(BEGAN + second) for second in range(0, MINUTES * 60, 2)]
    it.sizes = [StoreSize(BEGAN + second, 10.0, 100, 20) for second in range(0, MINUTES * 60, 5)]
    it.pings = [Timing(role, BEGAN + second, 0.004, True, pid) for role, pid in PINGED for second in range(120)]
    it.probes = [Timing("probe", BEGAN + second, 0.050, True) for second in range(120)]
    it.faults = Counter({"kill worker": 3})
    it.wanted_faults = frozenset({"kill worker"})
    return it


def sell(it: Evidence, number: str, *, cents: int = 500, by: str | None = None) -> None:
    """An order that went well."""
    charge = f"ch-{number}"
    it.orders[number] = Order(number, "ann", cents, BEGAN, accepted_at=BEGAN + 1)
    result = {"number": number, "charge": charge, "cents": cents, "credit_by": by}
    it.ends[f"invoice-{number}"] = End(workflow="checkout", status="succeeded", result=result)
    it.invoices.append(Invoice(number, cents, "paid", charge))
    it.stock[number] = 1
    it.bank += [charged(number, cents), {"kind": "heard", "event": f"evt-{charge}", "number": number}]
    it.bookings[f"evt-{charge}", number] = 1
    it.mails.append({"kind": "receipt", "number": number, "at": BEGAN + len(it.mails)})


def undo(
    it: Evidence, number: str, *, cents: int = 500, charge: str = "", status: str = "failed", reason: str = ""
) -> None:
    """An order that was undone."""
    it.orders[number] = Order(number, "ann", cents, BEGAN, accepted_at=BEGAN + 1)
    it.ends[f"invoice-{number}"] = End(workflow="checkout", status=status, reason=reason)
    it.invoices.append(Invoice(number, cents, "void", None))
    it.stock[number] = 0
    it.bank += [charged(number, cents)] if charge else []
    it.bank.append({"kind": "cancellation", "number": number, "cents": cents if charge else 0})


def charged(number: str, cents: int, *, key: str = "k") -> dict[str, Any]:
    """A line of the bank's ledger."""
    return {"kind": "charge", "key": key, "charge": f"ch-{number}", "number": number, "cents": cents}


def sample(at: float, **figures: Any) -> Sample:
    """A worker at one moment, as it is all the time unless figures say otherwise."""
    usual: dict[str, Any] = {"rss_mb": 60.0, "fds": 20, "threads": 9, "connections": 6, "cpu_seconds": 1.0}
    return Sample(at=at, role="worker-1", pid=7, **(usual | figures))


def grow(it: Evidence, figure: str, each: float) -> None:
    """One sample after the other has a little more."""
    usual = it.samples[0]
    it.samples = [
        sample(one.at, **{figure: type(getattr(usual, figure))(getattr(usual, figure) + each * number)})
        for number, one in enumerate(it.samples)
    ]


def a_process_ends(it: Evidence) -> None:
    it.lost.append("worker-1 (process 7) ended by itself with code 1")


def a_log_has_a_traceback(it: Evidence) -> None:
    it.tracebacks.append("web-1: AssertionError: planted")


def an_answer_is_500(it: Evidence) -> None:
    it.odd_answers.append("PUT /invoices/n-1: 500")


def the_world_breaks(it: Evidence) -> None:
    it.broken.append("KeyError: planted")


def a_run_is_stuck(it: Evidence) -> None:
    it.still_open["invoice-n-1"] = "it waits for signal 'settled'"


def an_accepted_order_is_gone(it: Evidence) -> None:
    del it.ends["invoice-n-1"]


def an_order_fails_for_no_reason(it: Evidence) -> None:
    it.ends["invoice-poor"].reason = "KeyError"


def an_order_cancels_itself(it: Evidence) -> None:
    it.orders["cancelled"].cancelled_at = None


def an_order_times_out(it: Evidence) -> None:
    it.ends["invoice-poor"].status = "timed_out"


def an_order_is_charged_twice(it: Evidence) -> None:
    it.bank.append(charged("n-1", 500, key="another"))


def the_amount_is_wrong(it: Evidence) -> None:
    it.orders["n-1"].cents += 1


def a_stranger_is_charged(it: Evidence) -> None:
    it.bank.append(charged("stranger", 500))


def a_paid_order_is_not_charged(it: Evidence) -> None:
    it.bank = [entry for entry in it.bank if entry["number"] != "n-1"]
    del it.bookings["evt-ch-n-1", "n-1"]


def a_paid_order_was_given_back(it: Evidence) -> None:
    it.bank.append({"kind": "cancellation", "number": "n-1", "cents": 500})


def a_paid_order_is_open_in_the_tables(it: Evidence) -> None:
    it.invoices[1] = Invoice("n-1", 500, "open", None)


def an_invoice_is_there_twice(it: Evidence) -> None:
    it.invoices.append(it.invoices[1])


def an_item_is_taken_twice(it: Evidence) -> None:
    it.stock["n-1"] = 2


def a_receipt_is_missing(it: Evidence) -> None:
    it.mails = [mail for mail in it.mails if mail["number"] != "n-1"]


def a_charge_stays_after_the_undo(it: Evidence) -> None:
    it.bank = [entry for entry in it.bank if (entry["kind"], entry["number"]) != ("cancellation", "cancelled")]


def an_undone_invoice_is_open(it: Evidence) -> None:
    [row] = [row for row in it.invoices if row.number == "poor"]
    row.status = "open"


def an_item_stays_taken_after_the_undo(it: Evidence) -> None:
    it.stock["poor"] = 1


def an_undone_order_has_a_receipt(it: Evidence) -> None:
    it.mails.append({"kind": "receipt", "number": "poor", "at": BEGAN})


def an_invoice_comes_from_nowhere(it: Evidence) -> None:
    it.invoices.append(Invoice("nowhere", 5, "paid", None))


def a_webhook_is_lost(it: Evidence) -> None:
    del it.bookings["evt-ch-n-1", "n-1"]


def a_webhook_is_booked_twice(it: Evidence) -> None:
    it.bookings["evt-ch-n-1", "n-1"] = 2


def a_webhook_is_invented(it: Evidence) -> None:
    it.bookings["evt-ch-x", "n-1"] = 1


def a_probe_is_lost(it: Evidence) -> None:
    del it.bookings["probe-1", "probe"]


def two_people_hear_different_decisions(it: Evidence) -> None:
    it.decisions.append(Decision(run="invoice-credit", request="r-1", approved=False, by="bob"))


def credit_is_given_by_nobody(it: Evidence) -> None:
    it.decisions = [each for each in it.decisions if each.run != "invoice-credit"]


def credit_is_given_by_another_person(it: Evidence) -> None:
    it.ends["invoice-credit"].result["credit_by"] = "eve"


def credit_is_refused_by_nobody(it: Evidence) -> None:
    it.decisions = [each for each in it.decisions if each.run != "invoice-refused"]


def a_refused_letter_is_sent(it: Evidence) -> None:
    it.mails.append({"kind": "letter", "number": "no", "at": BEGAN})


def an_approved_letter_is_not_sent(it: Evidence) -> None:
    it.mails = [mail for mail in it.mails if mail["kind"] != "letter"]


def a_letter_is_gone(it: Evidence) -> None:
    del it.ends["letter-yes"]


def a_neighbour_waits_for_a_whole_burst(it: Evidence) -> None:
    it.checkout_began_at["neighbour"] = BEGAN + 100


def there_was_no_burst(it: Evidence) -> None:
    it.bursts.clear()


def the_mailer_is_flooded(it: Evidence) -> None:
    it.mails = [mail | {"at": BEGAN + number / 20} for number, mail in enumerate(it.mails)]


def a_line_is_imported_twice(it: Evidence) -> None:
    it.imported.append(("old", 2, 7))


def a_line_is_not_imported(it: Evidence) -> None:
    it.imported.pop()


def a_tick_is_missing(it: Evidence) -> None:
    del it.ticks[7]


def a_tick_is_doubled(it: Evidence) -> None:
    it.ticks.append(it.ticks[7])


def the_schedule_stops(it: Evidence) -> None:
    del it.ticks[8:]


def fsck_complains(it: Evidence) -> None:
    it.problems.append("outlive fsck ended with 1:")


def a_fault_is_missing(it: Evidence) -> None:
    it.faults.clear()


def hardly_anything_is_sold(it: Evidence) -> None:
    it.ended_at = BEGAN + 3_600
    it.ticks = [BEGAN + 5 * number for number in range(720)]


def memory_grows(it: Evidence) -> None:
    grow(it, "rss_mb", 0.3)


def files_leak(it: Evidence) -> None:
    grow(it, "fds", 0.8)


def threads_leak(it: Evidence) -> None:
    grow(it, "threads", 0.3)


def connections_leak(it: Evidence) -> None:
    grow(it, "connections", 0.5)


def a_process_has_too_many_connections(it: Evidence) -> None:
    it.samples[3] = sample(it.samples[3].at, connections=40)


def the_store_grows(it: Evidence) -> None:
    it.sizes = [StoreSize(one.at, 10.0 + number * 2, 100, 20) for number, one in enumerate(it.sizes)]


def there_are_too_many_connections(it: Evidence) -> None:
    it.sizes.append(StoreSize(BEGAN + MINUTES * 60, 10.0, 100, 120))


def pings_get_slow(it: Evidence) -> None:
    it.pings = [Timing("web-1", BEGAN + number, 0.004 * 1.1**number, True, 7) for number in range(120)]


def pings_of_one_process_get_slow(it: Evidence) -> None:
    it.pings[-120:] = [Timing("agents-1", BEGAN + number, 0.001 * 1.06**number, True, 9) for number in range(120)]


def a_kind_of_process_was_never_asked(it: Evidence) -> None:
    it.pings = [each for each in it.pings if each.role != "worker-1"]


def a_follower_misses_the_end(it: Evidence) -> None:
    it.stages_read["n-1"] = "charged"


def a_reader_misses_a_word(it: Evidence) -> None:
    it.letters_read["yes"] = "don"


def dashboards_show_nothing(it: Evidence) -> None:
    it.dashboard_events = 0


def no_overview_is_answered(it: Evidence) -> None:
    it.overviews = 0


def progress_is_never_read(it: Evidence) -> None:
    it.stages_read.clear()


def a_ping_fails(it: Evidence) -> None:
    it.pings.append(Timing("web-1", BEGAN, 10.0, False))


def small_runs_are_slow(it: Evidence) -> None:
    it.probes = [Timing(one.role, one.at, 5.0, True) for one in it.probes]


def nothing_was_timed(it: Evidence) -> None:
    it.probes.clear()


DOCTORS: list[Doctor] = [
    it
    for name, it in list(globals().items())
    if getattr(it, "__annotations__", {}) == {"it": "Evidence", "return": "None"}
]


def complaints(it: Evidence) -> Iterator[tuple[str, str]]:
    """What every check says."""
    for check in CHECKS:
        yield from ((check.__name__, complaint) for complaint in check(it))


def test_healthy_evidence_is_right(evidence: Evidence) -> None:
    """No check complains about a trial in which all went well."""
    assert list(complaints(evidence)) == []


@pytest.mark.parametrize("doctor", DOCTORS, ids=lambda it: it.__name__)
def test_doctored_evidence_is_wrong(evidence: Evidence, doctor: Doctor) -> None:
    """Each thing that may go wrong is noticed."""
    doctor(evidence)

    assert list(complaints(evidence))


def test_every_check_can_fail(evidence: Evidence) -> None:
    """No check stands there for nothing."""
    failed = set()
    for doctor in DOCTORS:
        doctored = copy.deepcopy(evidence)
        doctor(doctored)
        failed |= {name for name, _ in complaints(doctored)}

    assert failed == {check.__name__ for check in CHECKS}


def test_a_peak_and_a_warm_up_do_not_count_as_growth(evidence: Evidence) -> None:
    """One peak of memory, and what a process gains before it is warm, do not count as growth."""
    evidence.samples[20] = sample(evidence.samples[20].at, rss_mb=900.0)
    evidence.samples[:10] = [sample(one.at, rss_mb=20.0 + 4 * n) for n, one in enumerate(evidence.samples[:10])]

    assert list(complaints(evidence)) == []


def test_mails_that_a_struck_mailer_had_not_read_are_not_counted(evidence: Evidence) -> None:
    """They come at once when it is back."""
    the_mailer_is_flooded(evidence)
    evidence.mailer_struck_at.append(BEGAN - 1)

    assert list(complaints(evidence)) == []


def test_slope_is_that_of_most_pairs() -> None:
    """A line has its slope, whatever a few points do."""
    points = [(float(x), 2.0 * x) for x in range(300)]
    points[150] = (150.0, 1e6)

    assert slope(points) == pytest.approx(2.0)
    assert slope([(1.0, 5.0)]) == 0.0


def test_the_report_has_each_check_and_the_command(evidence: Evidence, tmp_path: Path) -> None:
    """The report has a line for each check and the command, and names the folder of the files if something is wrong."""
    trial = Trial(tmp_path, "postgresql://x", seed=4, minutes=3, ports=Ports((1, 2), 3, 4))
    lines, is_right = report(evidence, trial)
    a_run_is_stuck(evidence)
    wrong, is_still_right = report(evidence, trial)

    assert is_right
    assert not is_still_right
    assert sum(line.startswith("  ok") for line in lines) == len(CHECKS)
    assert "python -m proof.live --minutes 3 --seed 4" in lines[-1]
    assert f"Files: {tmp_path}" in wrong


def test_a_traceback_counts_only_outside_of_messages() -> None:
    """The traceback of a run that failed is logged, indented, as a part of a message."""
    log = "WARNING run x failed:\n    Traceback (most recent call last):\n    ValueError: no\n"
    surprise = 'Traceback (most recent call last):\n  File "x"\nKeyError: 7\n'

    assert surprises_in(log) == []
    assert surprises_in(log + surprise) == ["KeyError: 7"]


def test_the_second_release_differs_from_the_first(tmp_path: Path) -> None:
    """By one patch; the text that it replaces is in the example."""
    first, second = [
        (folder / "invoices" / "checkout.py").read_text("utf-8") for folder in make_releases(tmp_path).values()
    ]

    assert 'outlive.patched("thanks")' in second
    assert "patched" not in first
