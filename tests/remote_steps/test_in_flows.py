"""A step of a document that is a remote step: a task in a queue, which a program in any language claims."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

import outlive
from outlive import flow
from outlive._features.flows.graphs import FlowGraph, check_text
from outlive._kernel.client.beside import at_once
from outlive._kernel.define.registry import REGISTRY
from outlive.engine.view import view_of
from outlive.errors import RunFailedError
from outlive.errors.document import FlowError, Problem
from outlive.errors.run import TaskOutputError
from outlive.testing import TestEngine
from outlive.types import Task
from tests.engine.support import Place


@dataclass
class Page:
    """What is scanned."""

    url: str
    dpi: int = 300


@dataclass
class Scan:
    """What comes out of it."""

    words: int


ORDERS = """
name: remote-pages
input: { url: string }
steps:
  scan: { use: scanners/scan, with: { url: "${{ input.url }}" } }
  sign: { use: signers/sign, with: { words: "${{ steps.scan.words }}" } }
  count: { use: noop, with: { n: "${{ steps.scan.words + 1 }}" } }
output: { signed: "${{ steps.sign }}", counted: "${{ steps.count.n }}" }
"""
ITEMS = """
name: remote-items
steps:
  all: { use: map, with: { items: [3, 4], use: sums/double, with: "${{ item }}" } }
  deep:
    use: map
    with:
      items: [5]
      do: { steps: { one: { use: sums/double, with: "${{ item }}" } }, output: "${{ steps.one }}" }
output: "${{ steps.all.results + steps.deep.results }}"
"""
AGAIN = """
name: remote-again
steps:
  scan:
    use: scanners/scan
    timeout: 60s
    retry: { attempts: 3, first: 10s, kind: fixed, not_on: [BadPage] }
    on_error: { use_default: { failed: "${{ error.type }}: ${{ error.message }}" } }
output: "${{ steps.scan }}"
"""
PICTURE = """
name: remote-picture
steps:
  scan: { use: scanners/scan, retry: { attempts: 2, first: 1s } }
  after: { use: noop, with: { n: "${{ steps.scan }}" } }
output: "${{ steps.after.n }}"
"""
SIDE_BY_SIDE = """
name: remote-side
steps:
  a: { use: sums/double, with: 1, retry: { attempts: 2, first: 5s } }
  b: { use: sums/double, with: 2, retry: { attempts: 2, first: 5s } }
  c: { use: sums/double, with: "${{ steps.a + steps.b }}" }
output: "${{ steps.c }}"
"""
ALONE = "name: remote-alone\nsteps: { a: { use: sums/double, with: 1 } }"
FITS = "name: remote-fits\nsteps: { a: { use: fitting/scan } }\noutput: '${{ steps.a.words }}'"

pages, items, again, alone = (flow.parse(text) for text in (ORDERS, ITEMS, AGAIN, ALONE))
side_by_side, fits = flow.parse(SIDE_BY_SIDE), flow.parse(FITS)


@pytest.fixture
async def engine() -> AsyncIterator[TestEngine]:
    """An engine with a worker, in memory."""
    async with TestEngine() as engine:
        yield engine


async def claimed(engine: TestEngine, use: str) -> Task:
    """The next task of a remote step."""
    queue, _, step = use.partition("/")
    await engine.settle()
    task = await engine.tasks.claim(queue, [step], lease_seconds=1000)
    assert task is not None
    return task


def problems_of(text: str) -> Sequence[Problem]:
    """What a check says of a document."""
    return check_text(text).problems


async def test_a_document_calls_remote_steps(engine: TestEngine) -> None:
    """A program that knows only the names of the queue and the step does the work, and the flow goes on with what it
    said, as plain data. [FE-O9]"""
    run = await engine.start(pages, {"url": "a.png"}, id="p-1")
    scan = await claimed(engine, "scanners/scan")
    assert (scan.step, scan.queue, scan.input, scan.output_schema) == ("scan", "scanners", {"url": "a.png"}, None)
    assert "remote worker of queue scanners" in await run.why()
    await engine.tasks.complete(scan.id, scan.lease, {"words": 7, "$": [1]})
    sign = await claimed(engine, "signers/sign")
    assert sign.input == {"words": 7}
    await engine.tasks.complete(sign.id, sign.lease, "by ann")

    assert await run.result() == {"signed": "by ann", "counted": 8}

    calls = [event.data["call"] for event in await run.history() if event.type == "DetachedStarted"]
    assert calls == ["scan", "sign"]


@pytest.mark.every_store
async def test_a_flow_of_the_library_runs_where_no_code_is(place: Place) -> None:
    """A worker without any code runs a published document whose steps are all remote, and one that comes later goes on
    with it; on every store."""
    text = ORDERS.replace("remote-pages", "remote-library")
    async with TestEngine(place.url) if place.url != "memory:" else TestEngine() as engine:
        await engine.flows.apply(text)
        run = await engine.flows.start("remote-library", {"url": "a.png"})
        await engine.skip(seconds=40)
        scan = await claimed(engine, "scanners/scan")
        await engine.tasks.complete(scan.id, scan.lease, {"words": 1})
        sign = await claimed(engine, "signers/sign")
        await engine.tasks.complete(sign.id, sign.lease, None)
        assert await run.result() == {"signed": None, "counted": 2}


async def test_items_of_a_map_are_tasks(engine: TestEngine) -> None:
    """Each item is a task of its own, whichever is done first; a remote step may be given any JSON."""
    run = await engine.start(items)
    tasks = [await claimed(engine, "sums/double") for _ in range(3)]
    for task in reversed(tasks):
        await engine.tasks.complete(task.id, task.lease, task.input * 2)

    assert await run.result() == [6, 8, 10]


async def test_the_document_says_whether_a_task_comes_again(engine: TestEngine) -> None:
    """Its retry with its delays, its timeout for each attempt, and its default; a worker can say that another attempt
    would not help."""
    run = await engine.start(again)
    first = await claimed(engine, "scanners/scan")
    await engine.tasks.fail(first.id, first.lease, "jam", type="PaperJam")
    await engine.settle()
    assert await engine.tasks.claim("scanners", ["scan"]) is None
    await engine.skip(seconds=11)
    second = await claimed(engine, "scanners/scan")
    await engine.skip(seconds=61)  # Its time is up.
    await engine.skip(seconds=11)
    third = await claimed(engine, "scanners/scan")
    await engine.tasks.complete(third.id, third.lease, 5)
    assert await run.result() == 5
    assert len({first.id, second.id, third.id}) == 3

    for said in ({"type": "BadPage"}, {"retryable": False, "type": "BadPage"}):
        run = await engine.start(again)
        task = await claimed(engine, "scanners/scan")
        await engine.tasks.fail(task.id, task.lease, "torn", **said)
        assert await run.result() == {"failed": "BadPage: torn"}


async def test_a_remote_step_that_fails_fails_the_flow(engine: TestEngine) -> None:
    """Unless the document says otherwise: with what the worker said."""
    run = await engine.start(alone)
    task = await claimed(engine, "sums/double")
    await engine.tasks.fail(task.id, task.lease, "no", type="Overflow")
    with pytest.raises(RunFailedError, match="Overflow: no"):
        await run.result()


async def test_cancelling_a_flow_cancels_its_tasks(engine: TestEngine) -> None:
    """The worker hears of it with its next heartbeat."""
    run = await engine.start(alone)
    task = await claimed(engine, "sums/double")
    await run.cancel()
    await engine.settle()
    notice = await engine.tasks.heartbeat(task.id, task.lease)
    assert notice.is_cancelled


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ("once: true", "claims"),
        ("queue: other", "in its name"),
        ("limit: bank 1/s", "outlive queues set"),
        ("heartbeat_timeout: 5s", "lease"),
        ("undo: { use: http, with: { url: 'https://example.org' } }", "undo that"),
    ],
)
def test_what_a_remote_step_has_elsewhere_is_refused(field: str, said: str) -> None:
    """Each with where it belongs."""
    made = flow.parse(f"name: remote-odd\nsteps: {{ a: {{ use: sums/double, with: 1, {field} }} }}")
    with pytest.raises(FlowError, match=said):
        made.check()


@pytest.mark.parametrize("use", ["/double", "sums/", "a b/double", "sums/dou ble", "sums//double", "a/b/c", "sums/1x"])
def test_a_name_that_means_no_remote_step_is_refused(use: str) -> None:
    """A queue, a stroke and the name of a step."""
    with pytest.raises(FlowError, match="QUEUE/STEP"):
        flow.parse(f'name: remote-odd\nsteps: {{ a: {{ use: "{use}" }} }}')


def test_a_remote_step_hides_no_step_of_python() -> None:
    """No step and no workflow of Python can have a name with a stroke."""
    with pytest.raises(outlive.errors.InvalidArgumentError):
        outlive.step(name="sums/double")(claimed)
    with pytest.raises(outlive.errors.InvalidArgumentError):
        outlive.remote_step("sums/double", queue="a")


def test_a_secret_does_not_go_into_a_task() -> None:
    """The input of a remote step is in the journal, so a document whose `with` names a secret is refused."""
    text = """
name: remote-secret
vars: { key: { secret: true } }
steps: { a: { use: sums/double, with: { key: "${{ vars.key }}" } } }
"""
    (problem,) = [each for each in problems_of(text) if not each.is_warning]
    assert "vars.key is a secret" in problem.message


def test_what_code_declares_of_a_remote_step_is_checked() -> None:
    """Its input, its output, and what is unknown; a queue and a step that no code declares are a warning."""
    text = """
name: remote-typed
steps:
  one: { use: typed/scan, with: { uri: a, dpi: fine } }
  two: { use: typed/scan, with: 7 }
  three: { use: typed/double, with: { n: 1 } }
  four: { use: typed/scan, with: { url: a } }
  five: { use: typed/scam, with: { url: "${{ steps.four.pages }}" } }
  six: { use: elsewhere/scan, with: [1] }
output: "${{ steps.three }}"
"""
    with REGISTRY.forgetting():
        outlive.remote_step("scan", input=Page, output=Scan, queue="typed")
        outlive.remote_step("double", input=int, output=int, queue="typed")
        found = [(each.code, each.message, each.suggestion) for each in problems_of(text)]

    said = "\n".join(": ".join(each) for each in found)
    assert "steps.one calls typed/scan: it needs url" in said
    assert "steps.one.with.dpi is a string; typed/scan takes a number" in said
    assert "steps.two.with is a number; typed/scan takes a map" in said
    assert "steps.three.with is a map" in said
    assert "pages" in said
    assert "no worker is known that takes step scam from queue typed: did you mean typed/scan?" in said
    assert "no worker is known that takes step scan from queue elsewhere" in said


async def test_the_output_fits_what_code_declares(engine: TestEngine) -> None:
    """A worker hears at once that its output does not fit, and the flow does not see it."""
    with REGISTRY.forgetting():
        outlive.remote_step("scan", input=Page, output=Scan, queue="fitting")
        run = await engine.start(fits)
        task = await claimed(engine, "fitting/scan")
        with pytest.raises(TaskOutputError):
            await engine.tasks.complete(task.id, task.lease, {"words": "many"})
        await engine.tasks.complete(task.id, task.lease, {"words": 3})
        assert await run.result() == 3


async def test_a_picture_says_who_is_waited_for(engine: TestEngine) -> None:
    """A step whose task failed and comes again is not shown as failed while it is worked on."""
    await engine.flows.apply(PICTURE)
    await engine.skip(seconds=40)
    run = await engine.flows.start("remote-picture")
    states = []

    async def look() -> None:
        found = await view_of(engine).graph(run.id, at_once)
        assert isinstance(found, FlowGraph)
        states.append({id: view.state.value for id, view in found.views.items()})

    task = await claimed(engine, "scanners/scan")
    await look()
    await engine.tasks.fail(task.id, task.lease, "jam")
    await engine.skip(seconds=2)
    task = await claimed(engine, "scanners/scan")
    await look()
    await engine.tasks.complete(task.id, task.lease, 4)
    assert await run.result() == 4
    await look()
    assert states == [
        {"scan": "waiting", "after": "pending"},
        {"scan": "waiting", "after": "pending"},
        {"scan": "succeeded", "after": "succeeded"},
    ]


async def test_parallel_remote_steps_replay(tmp_path: Path) -> None:
    """Tasks that end in another order than they began, with retries between, end the same flow when another worker
    replays its journal after each of them."""

    @asynccontextmanager
    async def worker() -> AsyncIterator[TestEngine]:
        async with TestEngine(f"sqlite:{tmp_path / 'side.db'}") as engine:
            await engine.skip(seconds=6)
            yield engine

    async with worker() as engine:
        await engine.start(side_by_side, id="side-1")
        one, two = await claimed(engine, "sums/double"), await claimed(engine, "sums/double")
        await engine.tasks.fail(two.id, two.lease, "busy")
    async with worker() as engine:
        await engine.tasks.fail(one.id, one.lease, "busy")
    for _ in range(3):
        async with worker() as engine:
            await engine.skip(seconds=6)
            task = await claimed(engine, "sums/double")
            await engine.tasks.complete(task.id, task.lease, task.input * 2)
    async with worker() as engine:
        assert await engine.get("side-1").result() == 12
