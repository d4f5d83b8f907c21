"""Metrics of an engine, in the text format that Prometheus reads.

    text = await outlive.metrics.exposition(engine)

`outlive worker --metrics-port 9464` serves them, and so does the HTTP API at `/metrics`.
"""

from outlive.metrics.exposition import CONTENT_TYPE, exposition

__all__ = ["CONTENT_TYPE", "exposition"]
