"""Golden stories of flows. Never change them.

`flow` and `flow-begun` were written by an Outlive in which all branches of a condition were needed: a run of that time
keeps that rule. `flow-lazy` has the mark of the rule that there is now.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from outlive import flow
from outlive.testing import TestEngine
from tests.golden.stories import charge, reserve

DOCUMENT = f"""
name: golden-flow
input: {{ order: string }}
steps:
  hold: {{ use: {reserve.name}, with: {{ order: "${{{{ input.order }}}}" }} }}
  paid: {{ use: wait_for_signal, with: {{ name: paid }} }}
  express: {{ use: {reserve.name}, with: {{ order: express }}, if: steps.hold != null }}
  slow: {{ use: {reserve.name}, with: {{ order: slow }}, after: [paid] }}
  nap: {{ use: sleep, with: {{ seconds: 5m }}, after: [paid] }}
  bill:
    use: {charge.name}
    with: {{ cents: "${{{{ steps.paid.cents }}}}" }}
    after: [nap]
    undo: {{ use: {reserve.name}, with: {{ order: "${{{{ result.by }}}}" }} }}
    must_run: true
  boxes:
    use: map
    with:
      items: [1, 2]
      do:
        steps:
          small: {{ use: {reserve.name}, with: {{ order: "small ${{{{ item }}}}" }} }}
          large: {{ use: {reserve.name}, with: {{ order: "large ${{{{ item }}}}" }} }}
        output: "${{{{ item == 1 ? steps.small : steps.large }}}}"
output:
  way: "${{{{ steps.paid.cents > 100 ? steps.express : steps.slow }}}}"
  boxes: "${{{{ steps.boxes.results }}}}"
"""

golden_flow = flow.parse(DOCUMENT)


async def tell_flow(url: str) -> str:
    """To its end."""
    async with TestEngine(url) as engine:
        run = await engine.start(golden_flow, {"order": "a"}, id="golden-flow")
        await run.signal("paid", {"cents": 500})
        await run.result()
        return await engine.export("golden-flow")


async def tell_begun(url: str) -> str:
    """As far as it comes without the signal."""
    async with TestEngine(url) as engine:
        await engine.start(golden_flow, {"order": "b"}, id="golden-flow-begun")
        await engine.settle()
        return await engine.export("golden-flow-begun")


FLOW_STORIES: dict[str, Callable[[str], Awaitable[str]]] = {
    "flow": tell_flow,
    "flow-begun": tell_begun,
    "flow-lazy": tell_flow,
}
