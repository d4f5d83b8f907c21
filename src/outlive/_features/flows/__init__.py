"""Flows: documents that say which steps run with which data.

A `FlowWorkflow` is a workflow whose function is written by us: it interprets a document on the run's own loop and asks
for steps, children, timers and signals like any other workflow. So the journal, recovery, queues, the timeline and the
test kit know nothing special about it.

From text to a run
------------------
`document` makes a checked document of a text, and knows the place of every mistake. `run` makes a plan of a document
and runs its steps. `outside` is how these reach the world, and what the operator allows them. `built_in` has the names
that `use:` can say without code of the user. `other_systems` makes flows of the documents of other systems.

*The hash.* A document is known by the SHA-256 of its canonical JSON, and what runs is that canonical form. The first 48
bits are the version of the workflow, so a run is pinned to its document by the mechanism that pins runs to code.
"""

from outlive._kernel.feature import CliCommand, Feature

FEATURE = Feature(
    name="flows",
    in_engine="outlive._features.flows.in_engine",
    operations=("outlive._features.flows.operations", "outlive._features.flows.graph_operations"),
    commands={
        "flows": CliCommand("Develop", "Check, test, run and publish flows.", "outlive._features.flows.commands.flows"),
    },
)
