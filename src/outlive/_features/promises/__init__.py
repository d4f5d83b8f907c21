"""Promises: values that a program outside of a run settles."""

from outlive._kernel.feature import Feature

FEATURE = Feature(
    name="promises",
    operations=("outlive._features.promises.operations",),
)
