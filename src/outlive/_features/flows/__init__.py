"""Flows: workflows as documents."""

from outlive._kernel.feature import Command, Feature

FEATURE = Feature(
    name="flows",
    in_engine="outlive._features.flows.in_engine",
    operations=("outlive.http.operations.flows",),
    commands={
        "flows": Command("Develop", "Check, test, run and publish flows.", "outlive.cli.flows"),
    },
)
