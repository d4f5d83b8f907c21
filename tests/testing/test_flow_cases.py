"""Tests inside documents: mocks, time, signals, decisions, and what is said when one fails."""

from __future__ import annotations

import pytest
from msgspec import UNSET

from outlive._features.flows.document.checking import parse_document
from outlive._features.flows.document.known_names import known_here
from outlive._features.flows.document.model import Case, Mock
from outlive.testing.flow_cases import run_case, same

WORLD = """
name: cases-world
input: { n: { type: integer } }
steps:
  fetch: { use: cases.nowhere, with: { n: "${{ input.n }}" }, retry: { attempts: 3, first: 1h, cap: 2h } }
  ready: { use: wait_for_signal, after: [fetch], with: { name: paid } }
  nap: { use: sleep, after: [ready], must_run: true, with: { seconds: 30d } }
output: { got: "${{ steps.fetch }}", paid: "${{ steps.ready }}" }
tests:
  - name: good
    input: { n: 1 }
    mocks: { fetch: { result: { a: 1 } } }
    signals: [{ name: paid, value: 5, after: 2d }]
    steps: { fetch: { a: 1 } }
    output: { got: { a: 1.0 }, paid: 5 }
  - name: fails
    input: { n: 1 }
    mocks: { fetch: { error: { type: shop.Down, message: all is down } } }
    error: { type: Down, message: is down }
  - name: other error
    input: { n: 1 }
    mocks: { fetch: { error: { message: no } } }
    error: { type: Down, message: yes }
  - name: no failure
    input: { n: 1 }
    mocks: { fetch: { result: 2 }, ready: { result: null } }
    error: {}
  - name: waits
    input: { n: 1 }
    mocks: { fetch: { result: 2 } }
  - name: unused
    input: { n: 1 }
    mocks: { fetch: { result: 2 }, ready: { result: null } }
    signals: [{ name: paid, after: 100d }]
    steps: { fetch: 3 }
"""


@pytest.mark.parametrize(
    ("name", "problems"),
    [
        ("good", []),
        ("fails", []),
        ("other error", ["it failed with Exception: no; expected Down", "does not hold 'yes'"]),
        ("no failure", ["it was to fail, and it succeeded"]),
        ("waits", ["it failed: StandstillError: the run waits for what the test does not give"]),
        ("unused", ["step fetch gave 2; expected 3", "signal paid was never sent"]),
    ],
)
async def test_cases_of_a_document(name: str, problems: list[str]) -> None:
    """Each says what it found and what was expected. [FE-A8]"""
    document = parse_document(WORLD, known=known_here())
    (case,) = [case for case in document.tests if case.name == name]

    result = await run_case(document, case)

    assert len(problems) == len(result.problems), result.problems
    for wanted, found in zip(problems, result.problems, strict=True):
        assert wanted in found
    assert result.passed is not bool(problems)


async def test_case_that_cannot_run_says_why() -> None:
    """A document that was made by code, for example, and not checked."""
    document = parse_document(WORLD, known=known_here())
    typo = await run_case(document, Case(name="typo", mocks={"fetsh": Mock(result=2)}))
    assert "has no step fetsh; it has fetch, ready, nap" in typo.problems[0]
    wrong = await run_case(document, Case(name="wrong", input={"n": "text"}, mocks={"fetch": Mock(result=2)}))
    assert "expected integer" in wrong.problems[0]


@pytest.mark.parametrize(
    ("number", "mock", "output"),
    [
        (1, "{ when: [{ with: { n: 1 }, result: one }] }", "one"),
        (2, "{ when: [{ with: { n: 1 }, result: one }, { with: { n: 2 }, result: two }] }", "two"),
        (3, "{ when: [{ with: { n: 1 }, result: one }], result: other }", "other"),
        (1, "{ when: [{ with: { n: 1 }, error: { message: no } }], result: other }", None),
        (3, "{ when: [{ with: { n: 1 }, result: one }] }", None),
    ],
)
async def test_a_mock_answers_by_its_arguments(number: int, mock: str, output: str | None) -> None:
    """The first answer counts whose arguments are those of the step; without one, what the mock says of all others."""
    text = f"""
name: cases-when
input: {{ n: {{ type: integer }} }}
steps: {{ ask: {{ use: cases.nowhere, with: {{ n: "${{{{ input.n }}}}" }} }} }}
output: "${{{{ steps.ask }}}}"
tests: [{{ name: one, input: {{ n: {number} }}, mocks: {{ ask: {mock} }} }}]
"""
    document = parse_document(text, known=known_here())

    result = await run_case(document, document.tests[0])

    assert result.output == (UNSET if output is None else output)


async def test_people_decide_in_a_case() -> None:
    """A test of a document gives the decisions of people, at once or after a while by its own clock."""
    text = """
name: cases-people
steps:
  nap: { use: sleep, with: { seconds: 1d } }
  ok: { use: approval, after: [nap], with: { title: Sure? }, timeout: 3d }
output: "${{ steps.ok.approved }}"
tests:
  - { name: "yes", approvals: { ok: { by: ann } }, output: true }
  - name: "no"
    approvals: { ok: { approved: false, by: bob, after: 2d } }
    output: false
    now: "2026-01-31T06:00:00Z"
"""
    document = parse_document(text, known=known_here())
    for case in document.tests:
        result = await run_case(document, case)
        assert result.passed, result.problems


def test_values_are_the_same_json() -> None:
    """1 is 1.0, and true is not 1."""
    assert same({"a": [1, None]}, {"a": [1.0, None]})
    assert not same(True, 1)
    assert not same([1], [1, 2])
    assert not same({"a": 1}, {"b": 1})
