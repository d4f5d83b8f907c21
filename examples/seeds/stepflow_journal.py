"""Stepflow: one journal for a whole tree of runs.

The page's `JournalEntry` has the run that an event belongs to and the root run whose journal it is in. So a flow
and its sub-flows have one sequence of events, recovery loads one journal, and deleting the root deletes
everything. Each of the page's verbs of a journal is here too: append (the engine does it), read from a sequence
number, the latest one, and the active roots.
"""

import asyncio

import outlive
from outlive import flow


@outlive.step
async def square(number: int) -> int:
    return number * number


inner = flow.parse("""
name: inner
input: { number: integer }
steps:
  square: { use: square, with: { number: "${{ input.number }}" } }
output: "${{ steps.square }}"
""")
outer = flow.parse("""
name: outer
input: { number: integer }
steps:
  sub: { use: inner, with: { number: "${{ input.number }}" } }
  again: { use: square, with: { number: "${{ steps.sub }}" } }
output: "${{ steps.again }}"
""")


async def main() -> None:
    async with outlive.Engine("memory:") as engine:
        run = await engine.start(outer, {"number": 3}, id="outer-1")
        print(await run.result())
        journal = await engine.history("outer-1")  # the whole tree, by the id of its root
        for event in journal:
            print(event.seq, event.run_id, event.type, event.data.get("call", ""))
        print("latest", journal[-1].seq)
        print("from 3", [event.seq async for event in run.follow(after=2)])
        moving = ("pending", "running", "waiting", "parked")
        print("active roots", [it.id for it in await engine.list(status=moving, roots_only=True)])
        children = [it for it in await engine.list() if it.root_id == "outer-1" and it.parent_id]
        print("children", [(child.workflow, child.parent_id) for child in children])
        await engine.purge(id_prefix="outer-1", older_than=0)
        print("left", await engine.count(id_prefix="outer-1"))


if __name__ == "__main__":
    asyncio.run(main())

# Prints:
# 81
# 0 outer-1 RunCreated
# 1 outer-1~1 RunCreated sub
# 2 outer-1~1 StepSucceeded square
# 3 outer-1~1 RunSucceeded
# 4 outer-1 StepSucceeded again
# 5 outer-1 RunSucceeded
# latest 5
# from 3 [3, 4, 5]
# active roots []
# children [('inner', 'outer-1')]
# left 0
