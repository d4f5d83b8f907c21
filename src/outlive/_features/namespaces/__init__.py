"""Namespaces: tenants with stores of their own in one store, and how much each may start."""

from outlive._kernel.feature import CliCommand, Feature

FEATURE = Feature(
    name="namespaces",
    in_engine="outlive._features.namespaces.in_engine",
    commands={
        "namespaces": CliCommand(
            "Operate",
            "Show the tenants of a store, and how much each may start.",
            "outlive._features.namespaces.commands",
        ),
    },
)
