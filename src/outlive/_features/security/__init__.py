"""Security: API keys, tokens for one run, and the log of what people and keys did."""

from outlive._kernel.feature import CliCommand, Feature

FEATURE = Feature(
    name="security",
    in_engine="outlive._features.security.in_engine",
    operations=(
        "outlive._features.security.key_operations",
        "outlive._features.security.token_operations",
        "outlive._features.security.me_operations",
        "outlive._features.security.audit_operations",
    ),
    commands={
        "audit": CliCommand(
            "Operate",
            "Show who did what, and prove that nothing of it was changed.",
            "outlive._features.security.audit_commands",
        ),
        "keys": CliCommand(
            "Operate", "Create, list and revoke the API keys of a store.", "outlive._features.security.key_commands"
        ),
    },
)
