"""A connection: the verbs of an engine behind an HTTP API, and the same for code without `await`."""

from __future__ import annotations

from outlive.remote.engine import RemoteVerbs
from outlive.remote.sync import SyncRemote
from outlive.remote.transport import Transport


class Remote(RemoteVerbs):
    """Talks to one server. An async context manager; `sync` is the same for code without an event loop."""

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport)
        self._sync = SyncRemote(self)

    @property
    def sync(self) -> SyncRemote:
        """The same verbs without `await`: `with outlive.connect(...).sync as engine:`."""
        return self._sync
