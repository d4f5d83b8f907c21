"""Verbs for many runs, each one durable operation in the background."""

from outlive._kernel.feature import Feature

FEATURE = Feature(
    name="bulk",
    in_engine="outlive._features.bulk.in_engine",
    operations=("outlive._features.bulk.operations",),
)
