"""Flows of every shape, killed and recovered at their commits."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from outlive import flow
from outlive.testing import crash_everywhere
from tests.flow import shop

POINTS = 5

SHAPES = {
    "chain": """
name: crashing-chain
steps:
  one: { use: shop.say, with: { what: one } }
  nap: { use: sleep, with: { seconds: 1h }, after: [one] }
  two: { use: shop.say, with: { what: "${{ steps.one }}!" }, after: [nap] }
  not: { use: shop.say, with: { what: not }, if: "${{ steps.two == '?' }}" }
output: ["${{ steps.two }}", "${{ steps.not }}"]
""",
    "beside": """
name: crashing-beside
concurrency: 2
steps:
  a: { use: shop.say, with: { what: a } }
  b: { use: shop.say, with: { what: b } }
  nap: { use: sleep, with: { seconds: 1m } }
  c: { use: shop.say, with: { what: "${{ steps.a + steps.b }}" }, after: [nap] }
output: "${{ steps.c }}"
""",
    "loops": """
name: crashing-loops
steps:
  fan:
    use: map
    with:
      items: [1, 2, 3]
      concurrency: 2
      do:
        steps:
          say: { use: shop.say, with: { what: "${{ item }}" } }
          nap: { use: sleep, with: { seconds: "${{ item }}" }, after: [say] }
          end: { use: shop.say, with: { what: "${{ steps.say * 10 }}" }, after: [nap] }
        output: "${{ steps.end }}"
  turn:
    use: iterate
    with: { start: 1, every: 1m, use: noop, with: { $if: "${{ item > 2 }}", then: { result: "${{ item }}" },
            else: { next: "${{ item + 1 }}" } } }
output: ["${{ steps.fan.results }}", "${{ steps.turn.iterations }}"]
""",
    "children": """
name: crashing-children
steps:
  inner: { use: crashing-chain }
  audit: { use: shop.audit, with: { order: { id: 1, cents: 2 } } }
  own: { use: start, with: { name: crashing-chain, id: "${{ run.id }}-own" } }
output: ["${{ steps.inner }}", "${{ steps.audit.cents }}"]
""",
    "choices": """
name: crashing-choices
steps:
  ask: { use: shop.say, with: { what: true } }
  nap: { use: sleep, with: { seconds: 1h } }
  yes_: { use: shop.say, with: { what: "yes" }, after: [nap] }
  no_: { use: shop.say, with: { what: "no" } }
output: "${{ steps.ask ? steps.yes_ : steps.no_ }}"
""",
    "undone": """
name: crashing-undone
steps:
  lend: { use: shop.lend, with: { book: Dune } }
  reserve:
    use: shop.reserve
    with: { order: { id: 1 } }
    undo: { use: shop.release, with: { hold: "${{ result.id }}" } }
  fail: { use: fail, with: { message: no }, after: [lend, reserve] }
""",
}


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Each test has a shop of its own."""
    shop.clear()
    yield
    shop.clear()


@pytest.mark.parametrize("shape", SHAPES)
async def test_a_flow_survives_a_crash(shape: str) -> None:
    """At any commit: the same end, and no step again whose outcome was known. [SF-U8 SF-U15 FB-R9]"""
    flow.parse(SHAPES["chain"])
    report = await crash_everywhere(flow.parse(SHAPES[shape]), max_points=POINTS)

    assert report.points > 0
    assert bool(report.error) is (shape == "undone")
