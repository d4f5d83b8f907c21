"""A run goes on with the document that it started with, and with the changes that it was given."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import outlive
from outlive import flow
from outlive._kernel.define.registry import Registry
from outlive.errors import RunFailedError
from outlive.testing import TestEngine
from tests.engine.support import in_time, waits
from tests.flow import shop

FIRST = """
name: pinned
steps:
  one: { use: shop.say, with: { what: one } }
  paid: { use: wait_for_signal, with: { name: paid }, after: [one] }
  two: { use: shop.say, with: { what: two }, after: [paid], must_run: true }
output: first
"""
SECOND = """
name: pinned
steps:
  zero: { use: shop.say, with: { what: zero } }
  one: { use: shop.say, with: { what: one }, after: [zero] }
  paid: { use: wait_for_signal, with: { name: paid }, after: [one], must_run: true }
output: second
"""


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Each test has a shop of its own."""
    shop.clear()
    yield
    shop.clear()


def having(*flows: flow.FlowWorkflow) -> Registry:
    """A process that has these flows, and what they use."""
    registry = Registry()
    registry.add_step(shop.say.spec)
    for each in flows:
        registry.add_workflow(each.spec)
    return registry


async def test_a_file_that_changes_does_not_change_a_run_under_way(tmp_path: Path) -> None:
    """The next run has the new document."""
    file, store = tmp_path / "pinned.flow.yaml", f"sqlite:{tmp_path / 'pinned.db'}"
    file.write_text(FIRST)
    first = flow.load(file)
    async with outlive.Engine(store) as engine:
        await waits(await engine.start(first, id="old"))

    file.write_text(SECOND)
    second = flow.load(file)
    assert (first.hash == second.hash, first.name == second.name) == (False, True)
    async with outlive.Engine(store) as engine:
        await engine.signal("old", "paid")
        assert await in_time(engine.get("old").result()) == "first"
        run = await engine.start(second, id="new")
        await engine.signal("new", "paid")
        assert await in_time(run.result()) == "second"

    assert shop.CALLS == ["one", "two", "zero", "one"]


async def test_a_worker_that_has_only_the_new_document_leaves_the_run_alone(tmp_path: Path) -> None:
    """It waits, and says what is missing; a worker that has the document goes on with it."""
    first, second, store = flow.parse(FIRST), flow.parse(SECOND), f"sqlite:{tmp_path / 'pinned.db'}"
    async with outlive.Engine(store, _registry=having(first)) as old:
        await waits(await old.start(first, id="old"))

    async with outlive.Engine(store, _registry=having(second)) as new:
        await new.signal("old", "paid")
        assert await new.get("old").why() == f"no live worker has pinned@{first.hash}; start one that defines it"
        run = await new.start(second, id="new")
        await new.signal("new", "paid")
        assert await in_time(run.result()) == "second"
        assert await new.get("old").status() == "waiting"

    async with outlive.Engine(store, _registry=having(first, second)) as both:
        assert await in_time(both.get("old").result()) == "first"


async def test_a_worker_without_a_step_does_not_offer_the_flow() -> None:
    """Its runs are left to a worker that has the step."""
    registry, parsed = Registry(), flow.parse(FIRST)
    registry.add_workflow(parsed.spec)
    assert not any(name.startswith("pinned@") for name in registry.definitions())

    registry.add_step(shop.say.spec)
    assert f"pinned@{parsed.version}" in registry.definitions()


OVERRIDDEN = """
name: overridden
vars: { shop: { type: string, default: main }, size: { type: integer, required: false } }
steps:
  one: { use: shop.say, with: { what: { shop: "${{ vars.shop }}", size: "${{ vars.size }}", kept: 1 } } }
output: "${{ steps.one }}"
"""


async def test_vars_and_overrides_are_arguments_of_the_run() -> None:
    """A merge patch: objects are merged, null removes, other things replace. [FE-A7]"""
    parsed = flow.parse(OVERRIDDEN)
    patch = {"one": {"with": {"what": {"kept": None, "more": "${{ vars.shop }}!"}}, "retry": {"attempts": 2}}}
    async with TestEngine() as engine:
        plain = await engine.start(parsed)
        changed = await engine.start(parsed.bind({}, vars={"shop": "north", "size": 3}, overrides=patch))

        assert await plain.result() == {"shop": "main", "size": None, "kept": 1}
        assert await changed.result() == {"shop": "north", "size": 3, "more": "north!"}


async def test_a_step_can_be_replaced_for_one_run() -> None:
    """For a test, or to get a run past a step that is out of order."""
    parsed = flow.parse(OVERRIDDEN)
    patch = {"one": {"use": "fail", "with": {"what": None, "message": "away"}, "on_error": {"use_default": "instead"}}}
    async with TestEngine() as engine:
        assert await (await engine.start(parsed.bind({}, overrides=patch))).result() == "instead"


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        ({"on": {"use": "noop"}}, "no step is called 'on'"),
        ({"one": 3}, "what changes step one is not an object"),
        ({"one": {"ues": "noop"}}, "ues"),
        ({"one": {"use": "shop.sya"}}, "shop.say"),
        ({"one": {"with": {"what": "${{ 1 + }}"}}}, "1 +"),
    ],
)
async def test_overrides_that_do_not_fit_start_no_run(overrides: dict[str, object], says: str) -> None:
    """Said when the run is started, and not by the run."""
    parsed = flow.parse(OVERRIDDEN)
    async with TestEngine() as engine:
        with pytest.raises(flow.FlowError) as caught:
            await engine.start(parsed.bind({}, overrides=overrides))

        assert (says in str(caught.value), int(await engine.count())) == (True, 0), str(caught.value)


async def test_a_variable_of_the_environment_is_fixed_when_the_run_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker elsewhere, with another environment, sees the same."""
    text = """
name: environment
vars: { region: { type: string, env: FLOW_REGION } }
steps:
  nap: { use: sleep, with: { seconds: 1m } }
  one: { use: shop.say, with: { what: "${{ vars.region }}" }, after: [nap] }
output: "${{ steps.one }}"
"""
    parsed = flow.parse(text)
    async with TestEngine() as engine:
        monkeypatch.setenv("FLOW_REGION", "north")
        run = await engine.start(parsed)
        monkeypatch.setenv("FLOW_REGION", "south")
        assert await run.result() == "north"

        monkeypatch.delenv("FLOW_REGION")
        with pytest.raises(flow.FlowInputError, match="set FLOW_REGION"):
            await engine.start(parsed)


async def test_a_run_that_is_started_by_name_is_checked_when_it_begins() -> None:
    """A program without the document can start it; what does not fit fails the run, and says why."""
    parsed = flow.parse("name: by-name\ninput: { n: integer }\nsteps: { a: { use: noop } }\noutput: '${{ input.n }}'\n")
    async with TestEngine() as engine:
        right = await engine.start("by-name", {"input": {"n": 4}}, version=parsed.version)
        wrong = await engine.start("by-name", {"input": {"n": "x"}}, version=parsed.version)

        assert await right.result() == 4
        with pytest.raises(RunFailedError, match="by-name does not take this"):
            await wrong.result()


INNER_OLD = """
name: pinned-inner
steps: { paid: { use: wait_for_signal, with: { name: paid }, must_run: true } }
output: old
"""
INNER_NEW = """
name: pinned-inner
input: { more: string }
steps: { paid: { use: noop } }
output: new
"""
OUTER = """
name: pinned-outer
steps:
  used: { use: pinned-inner }
  named: { use: flow, with: { name: pinned-inner } }
  own: { use: start, with: { name: pinned-inner, id: own } }
output: ["${{ steps.used }}", "${{ steps.named }}", "${{ steps.own }}"]
"""


async def test_a_child_goes_on_with_the_document_that_it_started_with(tmp_path: Path) -> None:
    """A child goes on with the document of its start, even if the new one would not take its input."""
    store = f"sqlite:{tmp_path / 'pinned.db'}"
    flow.parse(INNER_OLD)
    outer = flow.parse(OUTER)
    async with outlive.Engine(store) as engine:
        await waits(await engine.start(outer, id="outer"))

    flow.parse(INNER_NEW)
    async with outlive.Engine(store) as engine:
        for child in ("outer~1", "outer~2"):
            await engine.signal(child, "paid")
        assert await in_time(engine.get("outer").result()) == ["old", "old", "own"]
