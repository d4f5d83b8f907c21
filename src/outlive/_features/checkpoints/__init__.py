"""Checkpoints of programs that keep their own state; no run uses them."""

from outlive._kernel.feature import Feature

FEATURE = Feature(name="checkpoints")
