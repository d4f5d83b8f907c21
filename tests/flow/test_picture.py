"""Flows as pictures, and where the steps of a run are."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import msgspec

import outlive
from outlive import flow
from outlive._features.flows.graph import Node, StepState, StepView, nodes_of
from outlive._features.flows.library.progress import Progress, step_of
from outlive._features.flows.picture import lines, mermaid, said, svg
from outlive._features.flows.run.plan import Plan
from outlive._kernel.model import RunStatus
from outlive.flow import Document
from outlive.testing import TestEngine
from outlive.types import RunHandle
from tests.flow import shop

TEXT = """
name: picture-of-all
input: { n: { type: integer } }
steps:
  one: { use: shop.say, with: { what: 1 } }
  maybe: { use: shop.say, if: "${{ input.n > 1 }}", with: { what: "${{ steps.one }}" }, must_run: true }
  ready: { use: wait_for_signal, after: [one], must_run: true, with: { name: go } }
  last: { use: noop, after: [ready, maybe], with: { x: 1 } }
  idle: { use: noop }
output: "${{ steps.last }}"
"""


async def states(run: RunHandle[Any], document: Document) -> dict[str, str]:
    """Where each step of a run is."""
    progress = Progress(nodes_of(Plan(document)), run.id)
    progress.read(await run.history())
    return {id: view.state.value for id, view in progress.views(await run.info()).items()}


def test_graph_gives_depth_condition_and_need_of_each_step() -> None:
    """The graph of a flow gives the depth and the needs of each step, and says which are conditional or needed by
    nothing."""
    nodes = {node.id: node for node in nodes_of(Plan(flow.parse(TEXT).document))}

    assert {"one": 0, "maybe": 1, "ready": 1, "last": 2, "idle": 0} == {id: node.depth for id, node in nodes.items()}
    assert ("maybe", "ready") == nodes["last"].needs
    assert (True, False) == (nodes["maybe"].is_conditional, nodes["idle"].is_needed)


def test_a_flowchart_has_a_box_for_each_step_and_an_arrow_for_each_need() -> None:
    """A step with a condition has another shape, and one that nothing needs another line."""
    nodes = nodes_of(Plan(flow.parse(TEXT).document))
    text = mermaid(nodes)

    boxes = re.findall(r"^    (s\d)(\W+)([a-z]+)<br/><small>([\w#;]+)</small>", text, flags=re.MULTILINE)
    names = {place: name for place, _, name, _ in boxes}
    arrows = {(names[start], names[end]) for start, end in re.findall(r"(s\d) --> (s\d)", text)}
    assert {node.id: node.use.replace(".", "#46;") for node in nodes} == {name: use for _, _, name, use in boxes}
    assert ["maybe"] == [name for _, opening, name, _ in boxes if opening == '{{"']
    assert {(other, node.id) for node in nodes for other in node.needs} == arrows
    assert ["idle"] == [names[place] for place in re.findall(r"style (s\d) stroke-dasharray", text)]


def test_pictures_are_only_text() -> None:
    """Whatever the names are: nothing of them is markup, and the picture is well formed."""
    evil = Node(id="a</text><script>", use='"]; click x', needs=())
    nodes = [evil, Node(id="b", use="noop", needs=(evil.id,), is_conditional=True, depth=1, is_needed=False)]
    views = {"b": StepView(state=StepState.FAILED, note="<b>\x00")}

    drawn = svg("<title>", nodes, views)
    assert "<script" not in drawn
    ElementTree.fromstring(drawn)
    text = mermaid(nodes, views)
    assert "script>" not in text.replace("<br/>", "")
    assert ["    s1 --> s2"] == [line for line in text.splitlines() if "-->" in line]
    assert "class s2 failed" in text
    assert "failed, attempt 2, 0.50 s: a b" == said(
        StepView(state=StepState.FAILED, attempts=2, took_seconds=0.5, note="a\n b")
    )
    assert lines(nodes)[1].endswith("after a</text><script>, if, not needed")


async def test_steps_of_a_run_are_where_its_journal_says() -> None:
    """Before, while it waits, and at its end."""
    shop.clear()
    document = flow.parse(TEXT).document
    async with TestEngine() as engine:
        run = await engine.start(flow.parse(TEXT), {"n": 1})
        await engine.settle()
        expected = {"one": "succeeded", "maybe": "running", "ready": "waiting", "last": "pending", "idle": "skipped"}
        found = await states(run, document)
        assert expected | {"maybe": found["maybe"]} == found
        await run.signal("go")
        await run.result()
        assert expected | {"maybe": "skipped", "ready": "succeeded", "last": "succeeded"} == await states(run, document)


async def test_child_counts_as_its_step() -> None:
    """The step of a child run has succeeded with it, and a sleep that a cancel cut off counts as skipped."""
    shop.clear()
    own = """
name: picture-child
steps:
  child: { use: shop.audit, with: { order: { id: 1 } } }
  nap: { use: sleep, after: [child], with: { seconds: 5m } }
"""
    parsed = flow.parse(own)
    async with TestEngine() as engine:
        run = await engine.start(parsed)
        await engine.settle()
        assert {"child": "succeeded", "nap": "waiting"} == await states(run, parsed.document)
        await run.cancel()
        await engine.settle()
        assert {"child": "succeeded", "nap": "skipped"} == await states(run, parsed.document)


async def test_a_step_that_never_began_has_not_succeeded() -> None:
    """A step that never began, behind a failed step or because nothing needs it, is not shown as succeeded."""
    own = """
name: picture-of-a-failure
steps:
  wait: { use: wait_for_signal, with: { name: go } }
  lookup: { use: fail, after: [wait], with: { message: no such person } }
  account: { use: noop, after: [lookup] }
  mail: { use: noop, if: "${{ true }}", after: [account] }
  idle: { use: noop, after: [wait] }
output: "${{ steps.mail }}"
"""
    parsed = flow.parse(own)
    async with TestEngine() as engine:
        run = await engine.start(parsed)
        await engine.settle()
        waiting = {"wait": "waiting", "lookup": "pending", "account": "pending", "mail": "pending", "idle": "skipped"}
        assert waiting == await states(run, parsed.document)
        await run.signal("go")
        await engine.settle()
        found = await states(run, parsed.document)
        assert ("skipped", "skipped", "skipped") == (found["account"], found["mail"], found["idle"])


async def test_map_has_run_if_its_items_have() -> None:
    """A map waits until all its items have ended, even if one has, and has then succeeded, although its own end is not
    an event."""
    shop.clear()
    own = """
name: picture-of-a-map
steps:
  fan:
    use: map
    if: "${{ true }}"
    with:
      items: [1, 2]
      do:
        steps:
          say: { use: shop.say, with: { what: "${{ item }}" } }
          wait: { use: wait_for_signal, after: [say], with: { name: go } }
output: "${{ steps.fan }}"
"""
    parsed = flow.parse(own)
    async with TestEngine() as engine:
        run = await engine.start(parsed)
        await engine.settle()
        assert {"fan": "waiting"} == await states(run, parsed.document)
        await run.signal("go")
        await run.signal("go")
        await run.result()
        assert {"fan": "succeeded"} == await states(run, parsed.document)


async def test_open_step_says_what_its_run_waits_for() -> None:
    """With kind and name; and while no worker has the run, none of its steps runs."""
    own = """
name: picture-of-a-question
steps:
  asked: { use: approval, with: { name: door, title: "Let eve in?" } }
output: "${{ steps.asked }}"
"""
    parsed = flow.parse(own)
    async with TestEngine() as engine:
        run = await engine.start(parsed)
        await engine.settle()
        progress = Progress(nodes_of(Plan(parsed.document)), run.id)
        progress.read(await run.history())
        info = await run.info()
        assert "waiting for approval 'door' (\"Let eve in?\")" == said(progress.views(info)["asked"])
        for status in (RunStatus.PENDING, RunStatus.PARKED):
            assert "pending" == said(progress.views(msgspec.structs.replace(info, status=status))["asked"])


@outlive.workflow(name="picture.patient")
async def patient() -> str:
    """Waits for a signal."""
    return str(await outlive.wait_for_signal("go"))


async def test_step_that_is_a_run_of_its_own_has_begun_when_that_run_has() -> None:
    """A flow that is cancelled meanwhile shows the step as failed, and the step behind it as left out."""
    parsed = flow.parse("""
name: picture-of-a-child
steps:
  child: { use: picture.patient }
  last: { use: noop, after: [child], must_run: true }
""")
    async with TestEngine() as engine:
        run = await engine.start(parsed)
        await engine.settle()
        assert await states(run, parsed.document) == {"child": "waiting", "last": "pending"}
        await run.cancel()
        await engine.settle()

        assert await states(run, parsed.document) == {"child": "failed", "last": "skipped"}


def test_calls_belong_to_steps() -> None:
    """However often, and in whatever scope."""
    assert ["a"] * 5 == [step_of(call) for call in ("a", "a#2", "a/@timer", "a.7", "a.7/b#2")]


async def test_a_step_of_a_branch_is_shown_as_what_the_journal_has_of_it() -> None:
    """Pending while the condition is open, and left out when the other one was taken."""
    text = """
name: picture-of-branches
steps:
  ready: { use: wait_for_signal, with: { name: go } }
  yes_: { use: shop.say, with: { what: 1 } }
  no_: { use: shop.say, with: { what: 2 } }
  last: { use: shop.say, with: { what: "${{ steps.ready ? steps.yes_ : steps.no_ }}" } }
output: "${{ steps.last }}"
"""
    branches = flow.parse(text)
    assert "if needed" in lines(nodes_of(Plan(branches.document)))[1]
    async with TestEngine() as engine:
        run = await engine.start(branches)
        await engine.settle()
        before = await states(run, branches.document)
        await run.signal("go", True)
        await run.result()
        after = await states(run, branches.document)

    assert before == {"ready": "waiting", "yes_": "pending", "no_": "pending", "last": "pending"}
    assert after == {"ready": "succeeded", "yes_": "succeeded", "no_": "skipped", "last": "succeeded"}


async def test_a_step_is_shown_as_retrying_failed_or_undone() -> None:
    """A step whose attempt failed is shown as retrying and then as failed, and a step that was taken back as undone."""
    text = """
name: picture-of-a-saga
steps:
  hold: { use: shop.say, with: { what: 1 }, undo: { use: shop.say, with: { what: 2 } } }
  ready: { use: wait_for_signal, after: [hold], with: { name: go } }
  charge: { use: shop.say, after: [ready], with: { what: declined }, retry: { attempts: 2, first: 60 } }
output: "${{ steps.charge }}"
"""
    shop.clear()
    shop.FAILURES["declined"] = [ValueError("declined"), ValueError("declined")]
    saga = flow.parse(text)
    async with TestEngine() as engine:
        run = await engine.start(saga)
        await run.signal("go")
        await engine.settle()
        retrying = await states(run, saga.document)
        await engine.skip(hours=1)
        await engine.settle()
        ended = await states(run, saga.document)

    assert ("succeeded", "retrying") == (retrying["hold"], retrying["charge"])
    assert ("undone", "failed") == (ended["hold"], ended["charge"])
