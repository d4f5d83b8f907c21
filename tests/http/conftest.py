"""Webhooks start flows; the flows of a test are its own."""

from tests.flow.conftest import own_flows

__all__ = ["own_flows"]
