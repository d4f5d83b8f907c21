"""The pure parts of the page of a run: the fold of a journal, the scale, the critical path, the sentence.

They are called in a browser, since that is where they run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import pytest
from playwright.sync_api import Browser

from tests.e2e.site import Site
from tests.golden.make_timelines import expected_of, shown
from tests.golden.test_golden import FILES

Call: TypeAlias = Callable[..., Any]
BEGAN = datetime(2026, 11, 16, 14, 2, 11, tzinfo=UTC)
FOLDED = """({Timeline}, events) => {
  const it = new Timeline().takeAll(events);
  const began = it.beganAt;
  const after = (moment) => (moment === null ? null : Math.round(moment - began));
  return {
    rows: it.lines().map(({row, depth}) => ({
      key: row.key,
      depth,
      state: row.state,
      note: row.note,
      bars: row.bars.map((bar) => [after(bar.from), after(bar.to), bar.kind]),
      marks: row.marks.map((mark) => after(mark.at)),
    })),
    gaps: it.gaps.map((gap) => [after(gap.from), after(gap.to), gap.lost, gap.taken]),
    owners: it.owners.map((owner) => [owner.worker, owner.lost]),
    end: it.end?.status ?? null,
  };
}"""


DONE = ("succeeded", "continued", "decided", "approved", "rejected")
"""The states of a page for which a terminal has one word."""
SAID = """({Timeline}, events) => {
  const it = new Timeline().takeAll(events);
  const after = (moment) => (moment === null ? null : Math.round((moment - it.beganAt) * 1000));
  const shown = it.lines().filter(({row}) => ['step', 'child', 'other', 'approval'].includes(row.kind));
  const attempts = (row) => row.bars.filter((bar) => row.kind !== 'step' || !['again', 'wait'].includes(bar.kind));
  return {
    rows: shown.map(({row, depth}) => ({
      name: row.kind === 'child' ? `${row.label}, version ${row.version}` : row.label,
      kind: row.kind === 'other' ? 'run' : row.kind,
      depth,
      state: [row.state, row.open],
      failure: row.failure?.message ?? null,
      bars: attempts(row).map((bar) => [after(bar.from), after(bar.to)]),
    })),
    gaps: it.gaps.map((gap) => [
      after(gap.from), after(gap.to), `worker ${gap.lost} was lost; worker ${gap.taken} took over`,
    ]),
    end: it.end?.status ?? null,
  };
}"""


@pytest.fixture(scope="module")
def call(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Call]:
    """Calls a function of the page with a module of `views/run` and arguments."""
    folder: Path = tmp_path_factory.mktemp("modules")
    with Site(f"sqlite:{folder / 'site.db'}", worker=False) as site:
        page = browser.new_page()
        page.goto(site.url)
        root = page.evaluate("() => document.querySelector('script[type=module]').src.replace('app.js', '')")

        def run(module: str, function: str, *given: Any) -> Any:
            wanted = f"async ([url, given]) => ({function})(await import(url), ...given)"
            return page.evaluate(wanted, [f"{root}views/run/{module}.js", list(given)])

        yield run
        page.close()


def event(seq: int, ms: float, kind: str, run: str = "r", **data: Any) -> dict[str, Any]:
    """An event as the API gives it, so many milliseconds after the beginning."""
    return {"seq": seq, "at": instant(ms), "run_id": run, "type": kind, "data": data, "words": kind}


def instant(ms: float) -> str:
    """An instant inside an event."""
    return (BEGAN + timedelta(milliseconds=ms)).isoformat().replace("+00:00", "Z")


CREATED = event(0, 0, "RunCreated", workflow="refund", version=1, worker="a1")
FAILURE = {"type": "ValueError", "message": "no"}


def state_of(row: dict[str, Any]) -> str:
    """The word of a terminal for the state of a row."""
    state, is_open = row["state"]
    if is_open:
        return "open"
    return "done" if state in DONE else "failed" if state == "failed" else "stopped"


def test_golden_histories_have_the_rows_that_a_terminal_has(call: Call) -> None:
    """The bars, gaps and end too; `tests/cli/test_timeline.py` compares `outlive runs show` with the same files."""
    found = {path.stem: call("timeline", SAID, msgspec.to_builtins(shown(path))) for path in FILES}
    for each in found.values():
        for row in each["rows"]:
            row["state"] = state_of(row)

    assert found == {path.stem: expected_of(path) for path in FILES}
    assert any(each["gaps"] for each in found.values())


def test_attempts_are_bars_with_their_back_offs_between(call: Call) -> None:
    """Each as long as it took; a step that failed at first and then succeeded has succeeded."""
    found = call(
        "timeline",
        FOLDED,
        [
            CREATED,
            event(
                1,
                100,
                "AttemptFailed",
                call="charge",
                attempt=1,
                took="PT0.05S",
                failure=FAILURE,
                retry_at=instant(300),
            ),
            event(2, 400, "StepSucceeded", call="charge", attempt=2, took="PT0.08S", result=1),
            event(3, 410, "RunSucceeded", result=1),
        ],
    )

    (row,) = found["rows"]
    assert [[50, 100, "fail"], [320, 400, "ok"]] == row["bars"]
    assert ("step:charge", "succeeded", "succeeded") == (row["key"], row["state"], found["end"])


def test_the_gap_of_a_crash_says_who_was_lost_and_what_ran_again(call: Call) -> None:
    """From its last event to the claim; only what begins before anything else moves had been under way."""
    found = call(
        "timeline",
        FOLDED,
        [
            CREATED,
            event(1, 100, "StepSucceeded", call="reserve", attempt=1, took="PT0.09S", result=1),
            event(2, 1000, "RunClaimed", worker="b2", interrupted=True),
            event(3, 1500, "StepSucceeded", call="charge", attempt=1, took="PT0.49S", result=1),
            event(4, 1600, "StepSucceeded", call="mail", attempt=1, took="PT0.09S", result=1),
        ],
    )

    assert [[100, 1000, "a1", "b2"]] == found["gaps"]
    assert [["a1", True], ["b2", False]] == found["owners"]
    bars = {row["key"]: row["bars"] for row in found["rows"]}
    assert [[100, 1000, "again"], [1010, 1500, "ok"]] == bars["step:charge"]
    assert [[1510, 1600, "ok"]] == bars["step:mail"]


def test_waits_signals_and_approvals_have_rows_of_their_own(call: Call) -> None:
    """A wait ends with what it waited for; what no longer is waited for ends when the run went on."""
    waits = [
        {"kind": "signal", "name": "paid", "until": None, "run_id": "r", "detail": ""},
        {"kind": "timer", "name": "@timer", "until": instant(9000), "run_id": "r", "detail": ""},
    ]
    found = call(
        "timeline",
        FOLDED,
        [
            CREATED,
            event(1, 10, "RunSuspended", waits=waits),
            event(2, 500, "RunClaimed", worker="a1", interrupted=False),
            event(3, 501, "SignalReceived", name="paid", payload=1, key=""),
            event(4, 502, "ApprovalRequested", call="refund", name="refund", payload={}, assignees=["ann"]),
            event(5, 503, "RunSuspended", waits=[{"kind": "approval", "name": "refund", "until": None, "run_id": "r"}]),
            event(6, 900, "ApprovalDecided", approval="refund", payload={"approved": True, "by": "ann"}),
        ],
    )

    rows = {row["key"]: row for row in found["rows"]}
    assert ([[10, 501, "wait"]], [501]) == (rows["signal:paid"]["bars"], rows["signal:paid"]["marks"])
    assert [[10, 500, "wait"]] == rows["timer:@timer"]["bars"]
    assert [[502, 900, "ok"]] == rows["approval:refund"]["bars"]
    assert ("approved", "approved by ann") == (rows["approval:refund"]["state"], rows["approval:refund"]["note"])


def test_a_promise_is_one_row_until_it_is_settled(call: Call) -> None:
    """The wait has the id of the promise and the signal that settles it the call: both are the row of the promise."""
    waits = [{"kind": "promise", "name": "r:3dac21f5", "until": None, "run_id": "r", "detail": ""}]
    found = call(
        "timeline",
        FOLDED,
        [
            CREATED,
            event(1, 10, "PromiseMade", call="@promise", payload={"type": "str"}),
            event(2, 20, "RunSuspended", waits=waits),
            event(3, 500, "RunClaimed", worker="a1", interrupted=False),
            event(4, 501, "SignalReceived", name="@promise/0/@promise", payload={"value": 1}, key="0"),
        ],
    )

    (row,) = found["rows"]
    assert ("promise:@promise", "settled", [501]) == (row["key"], row["state"], row["marks"])
    assert [[10, 501, "ok"]] == row["bars"]


def test_children_stand_below_their_row_and_a_retry_makes_a_new_one(call: Call) -> None:
    """Steps of a child stand below its row, and a retried step gets a new row beside the old one."""
    found = call(
        "timeline",
        FOLDED,
        [
            CREATED,
            event(1, 10, "RunCreated", "r~1", workflow="invoice", version=1, parent_id="r", worker=""),
            event(2, 50, "StepSucceeded", "r~1", call="render", attempt=1, took="PT0.03S", result=1),
            event(3, 60, "RunSucceeded", "r~1", result=1),
            event(4, 90, "StepFailed", call="mail", attempt=1, took="PT0.02S", failure=FAILURE),
            event(5, 91, "RunFailed", failure=FAILURE),
            event(6, 500, "RunRetried", undone=[4, 5], reason="repaired"),
            event(7, 600, "StepSucceeded", call="mail", attempt=1, took="PT0.02S", result=1),
        ],
    )

    shown = [(row["key"], row["depth"], row["state"]) for row in found["rows"]]
    assert ("child:1", 0, "succeeded") == shown[0]
    assert ("step:1/render", 1, "succeeded") == shown[1]
    assert [("step:mail", 0, "stopped"), ("retried:retried", 0, "done"), ("step:mail'2", 0, "succeeded")] == shown[2:]
    assert found["end"] is None


def test_events_that_come_twice_count_once(call: Call) -> None:
    """A reader that comes again may get again what it knows."""
    step = event(1, 10, "StepSucceeded", call="a", attempt=1, took="PT0.001S", result=1)

    assert 1 == len(call("timeline", FOLDED, [CREATED, step, CREATED, step])["rows"])


def test_idle_time_is_squeezed_and_places_lead_back_to_moments(call: Call) -> None:
    """Steps of a second take most of the width beside a wait of a day; an even scale gives them nearly none."""
    function = """({Scale}, even) => {
      const day = 86_400_000;
      const scale = new Scale(0, day, [[0, 1000], [day - 1000, day]], {even});
      return [scale.at(1000), scale.moment(scale.at(500)), scale.ticks(0, 1, 8).length > 1];
    }"""

    squeezed, moment, has_ticks = call("scale", function, False)
    even, _, _ = call("scale", function, True)

    assert squeezed > 0.3
    assert even < 0.001
    assert abs(moment - 500) < 1
    assert has_ticks


def test_the_critical_path_has_the_steps_that_the_end_waited_for(call: Call) -> None:
    """The critical path has the longer one of two steps side by side."""
    events = [
        CREATED,
        event(1, 100, "StepSucceeded", call="first", attempt=1, took="PT0.09S", result=1),
        event(2, 200, "StepSucceeded", call="short", attempt=1, took="PT0.09S", result=1),
        event(3, 500, "StepSucceeded", call="long", attempt=1, took="PT0.39S", result=1),
        event(4, 600, "StepSucceeded", call="last", attempt=1, took="PT0.09S", result=1),
        event(5, 601, "RunSucceeded", result=1),
    ]
    function = """async ({criticalPath}, fold, events) => {
      const {Timeline} = await import(fold);
      return [...criticalPath(new Timeline().takeAll(events)).keys];
    }"""

    assert ["step:first", "step:long", "step:last"] == call("path", function, url_of(call, "timeline"), events)


RUN = {
    "id": "r",
    "number": 0,
    "status": "waiting",
    "reason": "",
    "waits": [],
    "error": None,
    "finished_at": None,
    "updated_at": "2026-11-16T14:02:11Z",
    "timeout_at": None,
}
APPROVAL = {
    "id": "refund",
    "run_id": "r",
    "name": "refund",
    "status": "pending",
    "title": "",
    "assignees": ["finance"],
    "requested_at": "2026-11-16T14:02:11Z",
    "deadline": None,
}


def advised(**arguments: Any) -> dict[str, Any]:
    """The advice of the API to resume something."""
    return {"verb": "resume", "arguments": arguments, "effect": "lets it go on"}


@pytest.mark.parametrize(
    ("run", "more", "said", "act"),
    [
        ({"waits": [{"kind": "approval", "name": "refund"}]}, {"approvals": [APPROVAL]}, "approval refund", "approve"),
        ({"waits": [{"kind": "signal", "name": "paid", "detail": ""}]}, {}, "Waits for the signal paid", "signal"),
        ({"waits": [{"kind": "child", "name": "r2"}]}, {}, "Waits for the run r2", "open"),
        ({"waits": [{"kind": "timer", "name": "@timer", "until": "2026-11-16T15:00:00Z"}]}, {}, "Sleeps", None),
        ({"status": "failed", "error": FAILURE}, {}, "ValueError: no", "retry"),
        ({"status": "parked", "reason": "paused by ann"}, {}, "Is paused by ann", "resume"),
        ({"status": "parked", "reason": "the journal differs"}, {}, "the journal differs", "resume"),
        ({"status": "running"}, {"why": "worker a1 runs it"}, "Worker a1 runs it.", None),
        ({"status": "pending"}, {"why": "its workflow is paused by ann", "advice": [advised(workflow="w")]},
         "Its workflow is paused by ann", "resume_workflow"),
        ({"status": "pending"}, {"why": "its workflow is paused by ann", "advice": [advised(all=True)]},
         "Its workflow is paused by ann", None),
        ({"status": "succeeded"}, {}, "Succeeded", None),
    ],
)  # fmt: skip
def test_the_sentence_names_the_one_action_that_would_move_it(
    call: Call, run: dict[str, Any], more: dict[str, Any], said: str, act: str | None
) -> None:
    """Or none, if no person can."""
    function = """({standing}, run, more) => {
      const it = standing(run, more);
      const words = it.text.map((part) => (typeof part === 'string' ? part : part.b ?? part.run ?? ''));
      return [words.join(''), it.act?.name ?? null];
    }"""

    text, name = call("standing", function, RUN | run, more)

    assert said in text
    assert act == name


def test_frames_of_the_users_code_come_first(call: Call) -> None:
    """The innermost before the others; those of libraries are apart."""
    traceback = (
        'Traceback (most recent call last):\n  File "/app/shop.py", line 5, in order\n    await charge()\n'
        '  File "/usr/lib/python3.11/asyncio/tasks.py", line 9, in wait\n'
        '  File "/app/shop.py", line 3, in charge\n    raise X\n'
    )
    function = "({causesOf}, failure) => causesOf(failure).map((it) => [it.own.map((f) => f.line), it.others.length])"

    assert [[[3, 5], 1]] == call("frames", function, {"type": "X", "message": "", "traceback": traceback})


def test_differences_of_two_runs_put_other_outcomes_first(call: Call) -> None:
    """Then what took longer, by how much."""
    function = """async ({differences}, fold, a, b) => {
      const {Timeline} = await import(fold);
      const found = differences(new Timeline().takeAll(a), new Timeline().takeAll(b), 0);
      return found.map((it) => [it.name, Math.round(it.longer), it.outcome]);
    }"""
    a = [
        CREATED,
        event(1, 100, "StepSucceeded", call="slow", attempt=1, took="PT0.09S", result=1),
        event(2, 200, "StepFailed", call="mail", attempt=1, took="PT0.01S", failure=FAILURE),
    ]
    b = [
        CREATED,
        event(1, 100, "StepSucceeded", call="slow", attempt=1, took="PT0.02S", result=1),
        event(2, 200, "StepSucceeded", call="mail", attempt=1, took="PT0.01S", result=1),
    ]

    found = call("differences", function, url_of(call, "timeline"), a, b)

    assert [["mail", 0, "failed here, succeeded there"], ["slow", 70, ""]] == found


def url_of(call: Call, module: str) -> str:
    """Where the browser finds a module."""
    function = (
        "(_, name) => document.querySelector('script[type=module]').src.replace('app.js', `views/run/${name}.js`)"
    )
    return str(call("frames", function, module))
