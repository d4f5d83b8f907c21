"""The log of the actions of people and keys."""

from outlive._kernel.feature import Command, Feature

FEATURE = Feature(
    name="audit",
    in_engine="outlive._features.audit.in_engine",
    operations=("outlive.http.operations.audit",),
    commands={
        "audit": Command(
            "Operate", "Show who did what, and prove that nothing of it was changed.", "outlive.cli.audit"
        ),
    },
)
