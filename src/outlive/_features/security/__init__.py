"""API keys, and tokens for one run."""

from outlive._kernel.feature import Command, Feature

FEATURE = Feature(
    name="security",
    in_engine="outlive._features.security.in_engine",
    operations=(
        "outlive.http.operations.keys",
        "outlive.http.operations.tokens",
    ),
    commands={
        "keys": Command("Operate", "Create, list and revoke the API keys of a store.", "outlive.cli.keys"),
    },
)
