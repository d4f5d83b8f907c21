"""Proves that a store is whole."""

from outlive._kernel.feature import Command, Feature

FEATURE = Feature(
    name="fsck",
    commands={
        "fsck": Command("Store", "Prove that a store is whole.", "outlive.cli.fsck"),
    },
)
