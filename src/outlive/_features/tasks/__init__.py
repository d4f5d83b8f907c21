"""Tasks: steps that remote workers, in any language, carry out."""

from outlive._kernel.feature import Feature

FEATURE = Feature(
    name="tasks",
    operations=("outlive._features.tasks.operations",),
)
