"""Events: a program sends one, and every workflow that has a trigger for it gets one run.

There is no table of events. The id of such a run is made of the workflow and of the event, and the store has one run of
an id: that the run exists is the record that the event was taken. So taking an event and creating its runs cannot part.
"""

from outlive._kernel.feature import CliCommand, Feature

FEATURE = Feature(
    name="events",
    in_engine="outlive._features.events.in_engine",
    operations=("outlive._features.events.operations",),
    mounts={"webhooks": "outlive._features.events.webhooks"},
    commands={
        "events": CliCommand(
            "Operate",
            "Send events, which start runs of the workflows that have a trigger for them.",
            "outlive._features.events.commands",
        ),
    },
)
