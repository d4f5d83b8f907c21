"""Schedules: when workflows start by themselves."""

from outlive._kernel.feature import Command, Feature

FEATURE = Feature(
    name="schedules",
    in_engine="outlive._features.schedules.in_engine",
    operations=("outlive.http.operations.schedules",),
    commands={
        "schedules": Command(
            "Operate", "Show when workflows start by themselves, and pause or trigger that.", "outlive.cli.schedules"
        ),
    },
)
