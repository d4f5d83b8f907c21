"""The verbs of runs over HTTP and on the command line; the verbs themselves are the kernel's."""

from outlive._kernel.feature import Command, Feature

FEATURE = Feature(
    name="runs",
    operations=(
        "outlive.http.operations.runs",
        "outlive.http.operations.verbs",
        "outlive.http.operations.follow",
        "outlive.http.operations.graphs",
        "outlive.http.operations.overview",
        "outlive.http.operations.workers",
        "outlive.http.operations.workflows",
        "outlive.http.operations.deploys",
        "outlive.http.operations.health",
        "outlive.http.operations.document",
        "outlive.http.operations.me",
    ),
    commands={
        "run": Command(
            "Run", "Start a run of a workflow or a flow, follow it to its end, and print its result.", "outlive.cli.run"
        ),
        "runs": Command(
            "Look and repair",
            "Find runs, see why they do not move, and act on one or on all that fit.",
            "outlive.cli.runs",
        ),
        "signal": Command("Look and repair", "Send a signal to a run.", "outlive.cli.messages"),
        "ask": Command("Look and repair", "Ask a run something, and print its answer.", "outlive.cli.messages"),
        "workers": Command(
            "Operate", "Show who works on a store, who is alive, and how much each owns.", "outlive.cli.workers"
        ),
        "workflows": Command("Operate", "Show what workers can run.", "outlive.cli.workflows"),
        "check-deploy": Command(
            "Develop", "Replay the open runs of a store with new code, before it is deployed.", "outlive.cli.deploy"
        ),
    },
)
