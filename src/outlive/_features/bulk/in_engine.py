"""Verbs for many runs in an engine."""

from outlive._features.bulk.workflow import BulkWorkflows
from outlive._kernel.in_engine import InEngine

IN_ENGINE = InEngine(own=(BulkWorkflows(),))
