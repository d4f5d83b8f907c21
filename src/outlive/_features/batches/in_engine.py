"""Batches in an engine."""

from outlive._features.batches.workflows import BatchWorkflows
from outlive._kernel.in_engine import InEngine

IN_ENGINE = InEngine(own=(BatchWorkflows(),))
