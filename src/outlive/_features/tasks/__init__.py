"""Tasks: steps that remote workers, in any language, carry out."""

from outlive._kernel.feature import Feature

FEATURE = Feature(
    name="tasks",
    in_engine="outlive._features.tasks.in_engine",
    operations=("outlive._features.tasks.operations",),
)
