"""Batches in an engine."""

from outlive._define.batch import BatchWorkflows
from outlive._kernel.in_engine import InEngine

IN_ENGINE = InEngine(own=(BatchWorkflows(),))
