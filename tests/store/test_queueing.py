"""Who is next in a queue: the arithmetic that all stores share."""

from __future__ import annotations

from outlive._kernel.model.pause import Pause
from outlive._kernel.model.queue import QueueLimits, QueueRecord, RateTier, queue_data, queue_in
from outlive._kernel.store.tables.queueing import PLAN_MIN, ROUNDS_MAX, HeldSlots, LineHead, Serving, sources


def serving(limits: QueueLimits | None = None, held: HeldSlots = HeldSlots(), *, limit: int = 10) -> Serving:  # noqa: B008
    """A claim of a queue at an instant."""
    return Serving("emails", QueueRecord(declared=limits or QueueLimits()), held, limit=limit, now_at=1_000_000)


def serve(claim: Serving, lines: dict[str, list[int]], turns: dict[str, float]) -> list[int]:
    """All that a claim takes from these lines."""
    taken: list[int] = []
    while claim.lines_wanted:
        known = [(key, turns.get(key, 0.0)) for key in lines if key not in claim.passed_over]
        plan = claim.plan(sorted(known, key=lambda line: line[1]))
        if not plan:
            break
        picked = claim.pick(
            {key: [LineHead(run, 1) for run in lines.get(key, [])[:count]] for key, count in plan.items()}
        )
        claim.took(picked)
        taken += picked
        for runs in lines.values():
            runs[:] = [run for run in runs if run not in picked]
    return taken


def test_room_is_what_the_narrowest_limit_leaves() -> None:
    """The room of a queue is what the narrowest of its limits leaves."""
    limits = QueueLimits(concurrency=10, per_worker=4, rate=(RateTier("bucket", 1, 3),))

    assert serving(limits, HeldSlots(in_all=9)).room == 1
    assert serving(limits, HeldSlots(by_worker=2)).room == 2
    assert serving(limits).room == 3
    assert serving(limits, limit=2).room == 2
    assert serving(limits, HeldSlots(in_all=11)).room == 0


def test_a_paused_queue_has_no_room() -> None:
    """Whatever its limits say."""
    claim = Serving("emails", QueueRecord(paused=Pause(1)), HeldSlots(), limit=5, now_at=1)

    assert (claim.room, claim.lines_wanted, claim.next_wake_at()) == (0, 0, None)


def test_a_short_line_leaves_its_turns_to_the_others() -> None:
    """The plan is corrected in the next round, and the empty line is forgotten."""
    claim = serving()

    taken = serve(claim, {"a": [1], "b": list(range(10, 30))}, {})

    assert taken[:2] == [1, 10]
    assert len(taken) == 10
    assert claim.empty == {"a"}


def test_a_line_alone_needs_no_turns() -> None:
    """A queue with one line writes no turns."""
    claim = serving()

    assert serve(claim, {"": [3, 1, 2]}, {}) == [3, 1, 2]
    assert (claim.turns, claim.empty, claim.data(None)) == ({}, {""}, None)


def test_weights_may_be_less_than_one() -> None:
    """A key with half a weight has half the turns."""
    claim = serving(QueueLimits(weights={"slow": 0.5}), limit=9)

    taken = serve(claim, {"slow": list(range(10)), "fast": list(range(10, 20))}, {})

    assert len([run for run in taken if run < 10]) == 3


def test_turns_go_on_where_the_last_claim_ended() -> None:
    """Over many claims of one run each, all keys are served equally often."""
    state, turns = QueueRecord(), dict[str, float]()
    lines = {key: list(range(place * 100, place * 100 + 50)) for place, key in enumerate("abc")}
    taken: list[int] = []
    for _ in range(30):
        claim = Serving("emails", state, HeldSlots(), limit=1, now_at=1)
        taken += serve(claim, lines, turns)
        turns |= claim.turns
        data = claim.data(queue_data(state))
        state = state if data is None else queue_in(data)

    assert [len([run for run in taken if run // 100 == place]) for place in range(3)] == [10, 10, 10]


def test_a_line_that_was_to_be_next_and_is_empty_leaves_its_turns_to_the_others() -> None:
    """The run for which others had waited is gone, cancelled or with a worker of other code. A claim with room for
    several runs planned several turns of its line, and broke off at the second."""
    claim = Serving("emails", QueueRecord(first=("gone", 0.0)), HeldSlots(), limit=10, now_at=1)

    assert [1, 2, 3] == serve(claim, {"here": [1, 2, 3]}, {})


def test_a_claim_that_meets_only_empty_lines_comes_back_for_the_rest() -> None:
    """It looks at a bounded number of them."""
    claim = serving(limit=1)
    lines: dict[str, list[int]] = {f"key-{number}": [] for number in range(PLAN_MIN * ROUNDS_MAX * 2)}

    assert serve(claim, lines, {}) == []
    assert len(claim.empty) == PLAN_MIN * ROUNDS_MAX
    assert claim.next_wake_at() == 1_000_000


def test_a_line_of_damaged_runs_does_not_keep_the_claimer_busy() -> None:
    """A claimer that finds only damaged runs in line does not come back at once."""
    claim = serving(limit=1)
    while claim.lines_wanted:
        claim.plan([("", 0.0)])
        claim.pick({"": [LineHead(run, 1) for run in (1, 2, 3)]})
        claim.took([])

    assert claim.next_wake_at() is None


def test_changed_limits_win() -> None:
    """A limit that was set at run time wins over the limit that code declares."""
    state = QueueRecord(declared=QueueLimits(concurrency=50, per_key=1), changed={"concurrency": 5, "per_key": None})

    assert (state.limits.concurrency, state.limits.per_key) == (5, None)


def test_sources_come_in_the_wanted_order_or_in_turns() -> None:
    """Runs without a queue are the queue without a name."""
    assert sources(["b", "", "a", "b"], {"a", "b", "c"}, claim_number=7) == ["b", "", "a"]
    assert sources(["gone"], {"a"}, claim_number=0) == []
    assert [sources(None, {"a", "b"}, claim_number=number)[0] for number in range(3)] == ["", "a", "b"]


def test_turn_of_a_queue_keeps_its_name_in_the_cell() -> None:
    """The cell of a queue calls the turn served last `virtual`, as the cells of earlier versions do."""
    assert b'{"virtual":7.5}' == queue_data(QueueRecord(turn=7.5))
    assert 7.5 == queue_in(b'{"virtual":7.5}').turn
