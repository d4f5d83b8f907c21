"""HTTP: webhooks that start flows.

from outlive.http import Webhooks

app = Webhooks(engine)      # an ASGI app: serve it alone, or mount it in another one
"""

from __future__ import annotations

from outlive.http.webhooks import Webhooks

__all__ = ["Webhooks"]
