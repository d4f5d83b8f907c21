"""A step runs only when the branch is taken that needs it, and a run keeps the rule under which it began."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from outlive import flow
from outlive._features.flows.run.driver import LAZY
from outlive.errors import RunFailedError
from outlive.events import PatchTaken, StepSucceeded
from outlive.testing import TestEngine
from tests.engine.inside import journal_of
from tests.flow import shop
from tests.flow.test_running import output_of
from tests.golden.flow_stories import golden_flow

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Each test has a shop of its own."""
    shop.clear()
    yield
    shop.clear()


SAYS = """
  a: { use: shop.say, with: { what: a } }
  b: { use: shop.say, with: { what: b } }
  "no": { use: shop.say, with: { what: null } }
  lies: { use: shop.say, with: { what: false } }
"""


@pytest.mark.parametrize(
    ("output", "expected", "ran"),
    [
        ("${{ input.first ? steps.a : steps.b }}", "a", ["a"]),
        ("${{ !input.first ? steps.a : steps.b }}", "b", ["b"]),
        ("${{ steps.lies ? steps.a : steps.b }}", "b", [False, "b"]),
        ("${{ coalesce(steps.a, steps.b) }}", "a", ["a"]),
        ("${{ coalesce(steps.no, steps.b) }}", "b", [None, "b"]),
        ("${{ coalesce(steps.a.missing, steps.b) }}", "an error", ["a"]),
        ("${{ coalesce(input.missing, steps.b) }}", "b", ["b"]),
        ("${{ input.first || steps.lies }}", True, [False]),
        ("${{ [1, 2].map(x, x == 1 ? steps.a : steps.b) }}", ["a", "b"], ["a", "b"]),
        ("x ${{ input.first ? steps.a : steps.b }} y", "x a y", ["a"]),
        ("{ $if: { $input: first }, then: { $step: a }, else: { $step: b } }", "a", ["a"]),
        ("{ $if: { $step: lies }, then: { $step: a } }", None, [False]),
        ("{ $coalesce: [{ $step: no }, { $step: a }, { $step: b }] }", "a", [None, "a"]),
        ("{ $input: given, default: { $step: b } }", "b", ["b"]),
        ("{ x: ['${{ input.first ? steps.a : steps.b }}', '${{ steps.lies }}'] }", {"x": ["a", False]}, ["a", False]),
        ("${{ input.first ? (steps.lies ? steps.a : 1) : steps.b }}", 1, [False]),
        ("${{ (input.first ? {'x': steps.a} : {'x': steps.b}).x }}", "a", ["a"]),
    ],
)
async def test_a_step_of_the_other_branch_does_not_run(output: str, expected: Any, ran: list[Any]) -> None:
    """The condition may need steps itself; steps that both branches need run beside it. [FE-S2]"""
    text = f"name: lazy-output\nsteps:\n{SAYS}\noutput: {output if output[0] == '{' else repr(output)}\n"
    if expected == "an error":
        with pytest.raises(RunFailedError, match="missing"):
            await output_of(text, {"first": True})
    else:
        assert await output_of(text, {"first": True}) == expected
    assert shop.CALLS == ran


@pytest.mark.parametrize(
    ("given", "expected", "ran"),
    [({"first": True}, "it is a", ["a", "it is a"]), ({"first": False}, "it is b", ["b", "it is b"])],
)
async def test_arguments_of_a_step_run_only_the_branch_that_they_take(
    given: Any, expected: str, ran: list[str]
) -> None:
    """The arguments of a step run only the steps of the branch that they take."""
    text = f"""
name: lazy-arguments
steps: {SAYS}
  all: {{ use: shop.say, with: {{ what: "it is ${{{{ input.first ? steps.a : steps.b }}}}" }} }}
output: "${{{{ steps.all }}}}"
"""
    assert await output_of(text, given) == expected
    assert shop.CALLS == ran


async def test_arguments_of_a_skipped_step_do_not_run() -> None:
    """A step that only a skipped step would have used does not run."""
    text = f"""
name: lazy-if
steps: {SAYS}
  all: {{ use: shop.say, with: {{ what: "${{{{ steps.a }}}}" }}, if: steps.lies, after: [b] }}
output: "${{{{ steps.all }}}}"
"""
    assert await output_of(text) is None
    assert shop.CALLS == ["b", False]


async def test_a_default_runs_its_steps_only_after_a_failure() -> None:
    """A second way that costs nothing while the first one works. [FE-R13]"""
    text = """
name: lazy-default
steps:
  main: { use: shop.say, with: { what: main }, on_error: { use_default: "${{ error.type + steps.spare }}" } }
  spare: { use: shop.say, with: { what: spare } }
output: "${{ steps.main }}"
"""
    assert await output_of(text) == "main"
    assert shop.CALLS == ["main"]

    shop.FAILURES["main"] = [ValueError("closed")]
    assert await output_of(text) == "ValueErrorspare"
    assert shop.CALLS == ["main", "main", "spare"]


@pytest.mark.parametrize(("on", "ran"), [("one", ["a"]), ("two", ["b"]), (True, [False]), ("three", [None])], ids=str)
async def test_a_switch_needs_the_case_that_it_takes(on: Any, ran: list[Any]) -> None:
    """A switch runs the steps of the case that it takes, and those of its default only if no case fits."""
    text = f"""
name: lazy-switch
steps: {SAYS}
  pick:
    use: switch
    with:
      on: ${{{{ input.on }}}}
      cases: {{ one: "${{{{ steps.a }}}}", two: "${{{{ steps.b }}}}", "true": "${{{{ steps.lies }}}}" }}
      default: ${{{{ steps.no }}}}
output: "${{{{ steps.pick }}}}"
"""
    assert await output_of(text, {"on": on}) == ran[0]
    assert shop.CALLS == ran


async def test_a_body_of_a_map_is_lazy_for_each_item() -> None:
    """Each item takes its own branch."""
    text = """
name: lazy-map
steps:
  all:
    use: map
    with:
      items: [1, 2, 3]
      concurrency: 1
      do:
        steps:
          odd: { use: shop.say, with: { what: "odd ${{ item }}" } }
          even: { use: shop.say, with: { what: "even ${{ item }}" } }
        output: "${{ item % 2 == 1 ? steps.odd : steps.even }}"
output: "${{ steps.all.results }}"
"""
    assert await output_of(text) == ["odd 1", "even 2", "odd 3"]
    assert shop.CALLS == ["odd 1", "even 2", "odd 3"]


async def test_the_failure_of_a_step_that_is_asked_for_late_is_that_of_the_flow() -> None:
    """A flow fails with the error of a step that its condition asked for late, and with that of a condition without a
    value."""
    text = f"name: lazy-fails\nsteps:\n{SAYS}\noutput: '${{{{ steps.lies ? steps.a : steps.b }}}}'\n"
    shop.FAILURES["b"] = [ValueError("closed")]
    with pytest.raises(RunFailedError, match="closed"):
        await output_of(text)
    with pytest.raises(RunFailedError, match="a condition is true or false"):
        await output_of(text.replace("steps.lies ?", "steps.no ?"))


@pytest.mark.parametrize(("order", "expected"), [("breadth", "abcAC"), ("depth", "aAbcC")])
async def test_the_order_of_the_document_decides_between_steps_that_are_asked_for(order: str, expected: str) -> None:
    """Steps that are ready begin in the order that the document chooses, breadth or depth, also beside an open
    branch."""
    text = f"""
name: lazy-{order}
order: {order}
concurrency: 1
steps:
  a: {{ use: shop.say, with: {{ what: a }} }}
  A: {{ use: shop.say, with: {{ what: A }}, after: [a] }}
  b: {{ use: shop.say, with: {{ what: b }} }}
  c: {{ use: shop.say, with: {{ what: c }} }}
  C: {{ use: shop.say, with: {{ what: C }}, after: [c] }}
  never: {{ use: shop.say, with: {{ what: never }} }}
output: ["${{{{ steps.C + steps.A + steps.b }}}}", "${{{{ input.none == null ? 1 : steps.never }}}}"]
"""
    await output_of(text, {"none": None})
    assert "".join(shop.CALLS) == expected


CHOOSES = """
name: lazy-chooses
steps:
  wait: { use: wait_for_signal, with: { name: go } }
  a: { use: shop.say, with: { what: a } }
  b: { use: shop.say, with: { what: b } }
output: "${{ steps.wait ? steps.a : steps.b }}"
"""


async def test_a_run_has_the_mark_of_its_rule_only_where_the_rule_matters() -> None:
    """Where the document alone says what runs, the journal is as it always was."""
    chooses = flow.parse(CHOOSES)
    plain = flow.parse(CHOOSES.replace("steps.wait ? steps.a : steps.b", "[steps.wait, steps.a, steps.b]"))
    async with TestEngine() as engine:
        for each, marks in ((chooses, [f"@patch/{LAZY}"]), (plain, [])):
            run = await engine.start(each)
            await run.signal("go", True)
            await run.result()
            assert [event.call for event in await journal_of(run) if isinstance(event, PatchTaken)] == marks


async def test_a_run_that_began_under_the_rule_before_keeps_it() -> None:
    """All branches count in it, those of a map too: its journal says so, and its other steps go on the same way."""
    async with TestEngine() as engine:
        run = await engine.import_run((GOLDEN / "flow-begun.jsonl").read_text("utf-8"))
        await run.signal("paid", {"cents": 500})

        assert await run.result() == {"way": "hold of express", "boxes": ["hold of small 1", "hold of large 2"]}
        done = [event.call for event in await journal_of(run) if isinstance(event, StepSucceeded)]
        again = await engine.start(golden_flow, {"order": "c"})
        await again.signal("paid", {"cents": 500})
        await again.result()
        lazily = [event.call for event in await journal_of(again) if isinstance(event, StepSucceeded)]

    boxes = [f"boxes.{number}/{size}" for number in (0, 1) for size in ("large", "small")]
    assert sorted(done) == sorted(["hold", "express", "slow", "bill", *boxes])
    assert sorted(lazily) == ["bill", "boxes.0/small", "boxes.1/large", "express", "hold"]
