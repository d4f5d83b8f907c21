"""Retention: how long runs stay after their end."""

from outlive._kernel.feature import Feature

FEATURE = Feature(
    name="retention",
    in_engine="outlive._features.retention.in_engine",
)
