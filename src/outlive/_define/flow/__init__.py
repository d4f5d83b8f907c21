"""Flows: documents that say which steps run with which data. A front door, not a second engine.

A `FlowWorkflow` is a workflow whose function is written by us: it interprets a document on the run's own loop and asks
for steps, children, timers and signals like any other workflow. So the journal, recovery, queues, the timeline and the
test kit know nothing special about it.

From text to a run
------------------
*Reading* (`reading`, `positions`) makes plain JSON data of YAML 1.2 or JSON, and knows the line and column of every
value. *The model* (`document`) gives the data its types. *Checking* (`checking`) finds what a type cannot say: unknown
steps, circles, expressions that cannot work. All of it happens before anything runs, and everything that is wrong is
reported at once (`problems`).

*The hash.* A document is known by the SHA-256 of its canonical JSON, and what runs is that canonical form. The first 48
bits are the version of the workflow, so a run is pinned to its document by the mechanism that pins runs to code.
"""
