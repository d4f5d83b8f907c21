"""What an engine has for those who watch over it: API keys, and the audit log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outlive.client.audit_log import AuditLog
from outlive.client.keys import Keys

if TYPE_CHECKING:
    from outlive.client.client import Client


class Secured:
    """The part of an engine that says who may do what, and who did."""

    if TYPE_CHECKING:

        @property
        def _verbs(self) -> Client: ...

    @property
    def keys(self) -> Keys:
        """API keys: creates, lists and revokes them."""
        return Keys(self._verbs.access)

    @property
    def audit(self) -> AuditLog:
        """What people and keys did, from the store; see `outlive.acting`."""
        return AuditLog(self._verbs.access)
