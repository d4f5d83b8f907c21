"""Events: what starts runs of the workflows that have a trigger for it, and sinks that hear of runs."""

from outlive._kernel.feature import Command, Feature

FEATURE = Feature(
    name="events",
    in_engine="outlive._features.events.in_engine",
    operations=("outlive.http.operations.events",),
    commands={
        "events": Command(
            "Operate",
            "Send events, which start runs of the workflows that have a trigger for them.",
            "outlive.cli.events",
        ),
    },
)
