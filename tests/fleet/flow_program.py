"""A worker of a fleet that has flows: `CONTROL=port python -m tests.fleet.flow_program URL NAME ...`.

Their steps are those of `tests.fleet.program`, so a test sees every execution, and holds a worker where it is to die.
"""

from __future__ import annotations

import asyncio
import sys

from outlive import flow
from outlive.testing.child_process import log_to_stderr
from tests.fleet.program import WORKFLOWS, main, parse

DOCUMENTS = (
    """
name: fleet-chain
steps:
  one: { use: fleet_visit, with: { step: first } }
  two: { use: fleet_visit, with: { step: second }, after: [one] }
  three: { use: fleet_visit, with: { step: third }, after: [two] }
output: ["${{ steps.one }}", "${{ steps.two }}", "${{ steps.three }}"]
""",
    """
name: fleet-line
concurrency: 1
steps:
  one: { use: fleet_visit, with: { step: first } }
  two: { use: fleet_visit, with: { step: second } }
  three: { use: fleet_visit, with: { step: third } }
output: ["${{ steps.one }}", "${{ steps.two }}", "${{ steps.three }}"]
""",
    """
name: fleet-fan
steps:
  a: { use: fleet_visit, with: { step: left } }
  b: { use: fleet_visit, with: { step: middle } }
  c: { use: fleet_visit, with: { step: right } }
  all: { use: fleet_visit, with: { step: total }, after: [a, b, c] }
output: ["${{ steps.a }}", "${{ steps.b }}", "${{ steps.c }}", "${{ steps.all }}"]
""",
    """
name: fleet-sub
steps:
  one: { use: fleet_visit, with: { step: inner first } }
  two: { use: fleet_visit, with: { step: inner second }, after: [one] }
output: ["${{ steps.one }}", "${{ steps.two }}"]
""",
    """
name: fleet-main
steps:
  one: { use: fleet_visit, with: { step: before } }
  sub: { use: fleet-sub, after: [one] }
  last: { use: fleet_visit, with: { step: after }, after: [sub] }
output: ["${{ steps.one }}", "${{ steps.sub }}", "${{ steps.last }}"]
""",
    """
name: fleet-with-a-process
steps:
  one: { use: fleet_visit, with: { step: first } }
  two: { use: fleet_visit_in_process, with: { step: second }, after: [one], retry: { attempts: 3, first: 1ms } }
  three: { use: fleet_visit, with: { step: third }, after: [two] }
output: ["${{ steps.one }}", "${{ steps.two }}", "${{ steps.three }}"]
""",
    """
name: fleet-with-a-queue
steps:
  one: { use: fleet_visit, with: { step: first } }
  two: { use: fleet_visit, with: { step: second }, after: [one], queue: work }
  three: { use: fleet_visit, with: { step: third }, after: [two] }
output: ["${{ steps.one }}", "${{ steps.two }}", "${{ steps.three }}"]
""",
)


if __name__ == "__main__":
    log_to_stderr()
    flows = [flow.parse(document) for document in DOCUMENTS]
    WORKFLOWS.clear()
    WORKFLOWS.update({each.spec.name: each for each in flows})
    asyncio.run(main(parse(sys.argv[1:])))
