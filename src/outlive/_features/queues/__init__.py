"""Queues as people see and change them; their limits, which the claim needs, are the kernel's."""

from outlive._kernel.feature import CliCommand, Feature

FEATURE = Feature(
    name="queues",
    operations=("outlive._features.queues.operations",),
    commands={
        "queues": CliCommand(
            "Operate",
            "Show how full queues are, change their limits, pause and resume them.",
            "outlive._features.queues.commands",
        ),
    },
)
