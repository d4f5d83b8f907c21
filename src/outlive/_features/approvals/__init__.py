"""Approvals: runs ask people, who decide with a key or with a link."""

from outlive._kernel.feature import Command, Feature

FEATURE = Feature(
    name="approvals",
    in_engine="outlive._features.approvals.in_engine",
    operations=(
        "outlive.http.operations.approvals",
        "outlive.http.operations.links",
    ),
    commands={
        "approvals": Command("Look and repair", "Show what runs ask people for.", "outlive.cli.approvals"),
        "approve": Command("Look and repair", "Approve what a run asks for.", "outlive.cli.approvals"),
        "reject": Command("Look and repair", "Reject what a run asks for.", "outlive.cli.approvals"),
    },
)
