"""The verbs of runs over HTTP and on the command line; the verbs themselves are the kernel's."""

from outlive._kernel.feature import CliCommand, Feature

FEATURE = Feature(
    name="runs",
    operations=(
        "outlive._features.runs.operations.runs",
        "outlive._features.runs.operations.verbs",
        "outlive._features.runs.operations.follow",
        "outlive._features.runs.operations.overview",
        "outlive._features.runs.operations.workers",
        "outlive._features.runs.operations.workflows",
    ),
    commands={
        "run": CliCommand(
            "Run",
            "Start a run of a workflow or a flow, follow it to its end, and print its result.",
            "outlive._features.runs.commands.run",
        ),
        "runs": CliCommand(
            "Look and repair",
            "Find runs, see why they do not move, and act on one or on all that fit.",
            "outlive._features.runs.commands.runs",
        ),
        "signal": CliCommand("Look and repair", "Send a signal to a run.", "outlive._features.runs.commands.messages"),
        "ask": CliCommand(
            "Look and repair", "Ask a run something, and print its answer.", "outlive._features.runs.commands.messages"
        ),
        "workers": CliCommand(
            "Operate",
            "Show who works on a store, who is alive, and how much each owns.",
            "outlive._features.runs.commands.workers",
        ),
        "workflows": CliCommand("Operate", "Show what workers can run.", "outlive._features.runs.commands.workflows"),
    },
)
