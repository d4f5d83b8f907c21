"""A flow of the library as a workflow that can be started where none of its steps is."""

from __future__ import annotations

from outlive._features.flows.flow import FlowWorkflow


class LibraryFlow(FlowWorkflow):
    """A flow of the library. Workers have its steps; the program that starts it need not."""

    def _check_startable(self) -> None:
        """See `Workflow`: it was checked when it was published."""
