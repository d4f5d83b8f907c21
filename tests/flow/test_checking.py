"""The check of a flow before anything runs: what a good one passes, warnings, and what it costs."""

import gc
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

import pytest

import outlive
from outlive._features.flows.document.checking import check, circles, parse_document
from outlive._features.flows.document.known_names import known_here
from outlive._features.flows.document.model import hash_of
from outlive._features.flows.document.positions import Positions
from outlive._features.flows.document.reading import Reading, read
from outlive._features.flows.document.validating import document_of
from outlive.flow import FlowError
from tests.flow.corpus import KNOWN, found_in, problems_in

EVERYTHING = """
name: everything
description: A flow with every field
language: 1
input:
  order: { type: object, required: [id], properties: { id: integer, lines: { type: array } } }
  note: { type: string, default: "" }
vars:
  hook: { type: string, env: HOOK }
  key: { type: string, secret: true, env: KEY, required: true, description: For the bank }
  mode: { schema: { enum: [a, b] }, default: a }
timeout: 1h
concurrency: 4
order: depth
on_failure: finish
resumable: false
retry: { attempts: null, first: 250ms, factor: 3, cap: 1m, kind: linear, on: [TimeoutError, 503], elapsed_max: 1h }
queue: slow
metadata: { owner: shop }
triggers:
  - event: order.created
    if: event.data.cents > 0 && has(event.id)
    input: { order: "${{ event.data }}" }
  - schedule: "0 6 * * 1-5"
    timezone: Europe/Stockholm
    overlap: buffer_one
    catch_up: 5
    input: { order: { id: 1 } }
  - webhook: /hooks/orders
    token: key
  - manual: true
steps:
  reserve:
    use: shop.reserve
    with: { order: "${{ input.order }}" }
    undo: { use: shop.charge, with: { back: "${{ result.id }}", of: "${{ input.order.id }}" } }
    once: true
    limit: bank 10/s
  charge:
    use: shop.charge
    if: steps.reserve != null
    with: { hold: "${{ steps.reserve.id }}", key: "${{ vars.key }}", run: "run ${{ run.id }}" }
    timeout: 30
    heartbeat_timeout: 5s
    on_error: { use_default: { failed: "${{ error.message }}" } }
  all:
    use: map
    with:
      items: "${{ input.order.lines }}"
      concurrency: "${{ size(input.order.lines) }}"
      do:
        steps:
          one: { use: http, with: { url: "${{ vars.hook }}/${{ item.id }}/${{ index }}/${{ steps.charge }}" } }
        output: "${{ steps.one.status }}"
  last:
    use: http
    after: [all]
    must_run: true
    if: ${{ steps.all.failed == 0 }}
    with: { url: "${{ vars.hook }}", body: { $coalesce: [{ $step: charge, path: $.id }, { $literal: { $step: x } }] } }
    on_error: { retry: { attempts: 2 } }
output: { all: "${{ steps }}", mode: "${{ vars.mode == 'a' ? 1 : 2 }}" }
tests:
  - name: one
    input: { order: { id: 1, lines: [] } }
    vars: { mode: b }
    mocks: { reserve: { result: { id: 1 } }, charge: { error: { type: ValueError, message: no } } }
    steps: { charge: { failed: no } }
    signals: [{ name: paid, value: 1, after: 5m }]
    approvals: { charge: { approved: false, by: ann } }
    overrides: { last: { with: { url: x } } }
    now: 2026-01-31T06:00:00Z
    output: {}
"""


def test_a_document_with_every_field_is_right() -> None:
    """Nothing is said about it."""
    assert [problem.shown() for problem in found_in(EVERYTHING)] == []


def test_a_document_without_text_is_checked_too() -> None:
    """Problems have a path instead of a line."""
    data = {"name": "made", "steps": {"one": {"use": "shop.charge", "with": {"id": "${{ steps.two.id }}"}}}}
    document = document_of(Reading(data, Positions()))

    (problem,) = check(document, KNOWN)
    assert problem.shown() == "steps.one.with.id: there is no step two; known: one"


def test_a_warning_is_an_error_only_where_it_is_asked_for() -> None:
    """A module that defines the step may be imported later."""
    text = "name: early\nsteps: { one: { use: shop.later } }"

    assert parse_document(text, known=KNOWN).name == "early"
    with pytest.raises(FlowError, match=r"early\.yaml:2:22: warning: shop\.later is not a built-in"):
        parse_document(text, "early.yaml", known=KNOWN, strict=True)


def test_comments_and_layout_do_not_change_the_hash() -> None:
    """A person may tidy a flow, and its runs go on."""
    tidy = "# A comment\n" + EVERYTHING.replace("{ retry: { attempts: 2 } }", "\n      retry:\n        attempts: 2")

    hashes = {hash_of(parse_document(text, known=KNOWN)) for text in (EVERYTHING, tidy)}
    assert len(hashes) == 1


@dataclass
class Hold:
    """What a typed step gives."""

    id: str
    lines: list["Line"]
    after: "Hold | None" = None


@dataclass
class Line:
    """A part of it."""

    sku: str


@outlive.step(name="checking.hold")
async def hold(order: int, when: datetime, note: str | None = None, price: Decimal = Decimal(1)) -> Hold:
    """With types that JSON has other forms for."""
    return Hold(str(order), [])


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ('{ order: 1, when: "2026-01-01T00:00:00Z", note: null, price: 2 }', None),
        ('{ order: "${{ input.order }}", when: "${{ input.text }}", note: "${{ input.text }}" }', None),
        (
            "{ order: 1, wen: x }",
            "steps.one calls checking.hold: it has no parameter 'wen'; it takes order, when, note, price; did you",
        ),
        ("{ order: 1 }", "steps.one calls checking.hold: it needs when, which `with` does not give"),
        ("{ order: one, when: x }", "steps.one.with.order is a string; checking.hold takes a number"),
        (
            '{ order: 1, when: x, note: "${{ [1] }}" }',
            "steps.one.with.note is a list of number; checking.hold takes a st",
        ),
    ],
)
def test_the_signature_of_a_step_is_checked_with_the_line(step: str, said: str | None) -> None:
    """By its annotations, as far as they say something about JSON. [FE-A5]"""
    inputs = "input: { order: integer, text: string }"
    text = f"name: typed\n{inputs}\nsteps:\n  one:\n    use: checking.hold\n    with: {step}\n"
    found = problems_in(text, known_here())

    assert len(found) == (said is not None)
    if said is not None:
        assert found[0].startswith("6:")
        assert said in found[0]


def test_the_result_of_a_step_is_checked_by_its_annotation() -> None:
    """A field that it does not have is found before anything runs; a default may have others."""
    text = """
name: typed
steps:
  one: { use: checking.hold, with: { order: 1, when: x } }
output:
  right: ["${{ steps.one.id }}", "${{ steps.one.lines[0].sku }}", "${{ steps.one.after.after.after.any }}"]
  wrong: ["${{ steps.one.name }}", "${{ steps.one.lines.sku }}"]
"""
    assert problems_in(text, known_here()) == [
        "7:26: unknown field 'name' of steps.one; there are id, lines, after",
        "7:57: steps.one.lines is a list of map and has no field 'sku'; write x[0].sku, or x.map(each, each.sku)",
    ]
    assert problems_in(text.replace("x } }", "x }, on_error: { use_default: 5 } }"), known_here()) == []


def test_every_built_in_of_this_process_is_known() -> None:
    """With what it takes."""
    known = known_here()

    assert {"noop", "sleep", "map", "iterate", "approval", "flow"} <= set(known.built_ins)
    assert "items" in known.built_ins["map"].arguments.__struct_fields__
    with pytest.raises(KeyError):
        known.built_ins["no such thing"]


@pytest.mark.parametrize(
    ("graph", "found"),
    [
        ({"a": {"b"}, "b": {"c"}, "c": set()}, []),
        ({"a": {"b"}, "b": {"a"}}, [{"a", "b"}]),
        ({"a": {"b"}, "b": {"a"}, "c": {"d"}, "d": {"c"}, "e": {"a"}}, [{"a", "b"}, {"c", "d"}]),
    ],
)
def test_each_circle_is_found(graph: dict[str, set[str]], found: list[set[str]]) -> None:
    """Not only the first."""
    assert sorted(map(sorted, circles(graph))) == sorted(map(sorted, found))


def test_a_chain_of_thousands_of_steps_is_checked() -> None:
    """A chain of five thousand steps is checked without recursion."""
    steps = {f"s{n}": {"use": "shop.charge", "after": [f"s{n - 1}"] if n else []} for n in range(5_000)}
    document = document_of(Reading({"name": "long", "steps": steps}, Positions()))

    assert check(document, KNOWN) == []


def test_a_thousand_steps_are_checked_in_no_time() -> None:
    """Read, typed and checked in a fifth of a second."""
    lines = ["name: big", "input: { order: { type: object } }", "steps:", "  s0: { use: shop.reserve }"]
    for number in range(1, 1000):
        given = f'{{ hold: "${{{{ steps.s{number - 1}.id }}}}", cents: "${{{{ input.order.cents }}}}" }}'
        lines += [f"  s{number}:", "    use: shop.charge", f"    with: {given}", "    timeout: 30s"]
    text = "\n".join([*lines, 'output: "${{ steps.s999 }}"'])
    seconds = []
    for _ in range(3):
        began = time.process_time()
        reading = read(text)
        assert check(document_of(reading), KNOWN, reading.positions) == []
        seconds.append(time.process_time() - began)

    assert min(seconds) < 0.2


@pytest.mark.parametrize("text", ["name: collected\nsteps: { a: { use: noop } }", "name: ["], ids=["right", "wrong"])
def test_the_garbage_collector_goes_on_after_a_document(text: str) -> None:
    """It is paused while a document is read, because that is faster; one that cannot be read pauses it no longer."""
    with suppress(FlowError):
        parse_document(text, known=known_here())

    assert gc.isenabled()
