"""Approvals: runs ask people, who decide with a key or with a link."""

from outlive._kernel.feature import CliCommand, Feature

FEATURE = Feature(
    name="approvals",
    in_engine="outlive._features.approvals.in_engine",
    operations=(
        "outlive._features.approvals.operations",
        "outlive._features.approvals.link_operations",
    ),
    commands={
        "approvals": CliCommand(
            "Look and repair", "Show what runs ask people for.", "outlive._features.approvals.commands"
        ),
        "approve": CliCommand(
            "Look and repair", "Approve what a run asks for.", "outlive._features.approvals.commands"
        ),
        "reject": CliCommand("Look and repair", "Reject what a run asks for.", "outlive._features.approvals.commands"),
    },
)
