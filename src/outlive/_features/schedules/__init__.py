"""Schedules: what becomes of their ticks, and what people do with them.

The workers' scheduler (`outlive._features.schedules.service`) and the verbs of `engine.schedules` write the same rows
in the same way: read a schedule, work out what it is to be, and write that together with the runs it starts, if no
other writer was first.
"""

from outlive._kernel.feature import CliCommand, Feature

FEATURE = Feature(
    name="schedules",
    in_engine="outlive._features.schedules.in_engine",
    operations=("outlive._features.schedules.operations",),
    commands={
        "schedules": CliCommand(
            "Operate",
            "Show when workflows start by themselves, and pause or trigger that.",
            "outlive._features.schedules.commands",
        ),
    },
)
