"""Batches: thousands of rows, each item durable on its own."""

from outlive._kernel.feature import CliCommand, Feature

FEATURE = Feature(
    name="batches",
    in_engine="outlive._features.batches.in_engine",
    operations=("outlive._features.batches.operations",),
    commands={
        "batches": CliCommand(
            "Look and repair",
            "Show how far batches are, what failed, and retry that.",
            "outlive._features.batches.commands",
        ),
    },
)
