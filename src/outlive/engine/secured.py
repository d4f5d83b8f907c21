"""What an engine has for those who watch over it: API keys, links to decide, and the audit log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outlive._model.retention import Keep, KeepAudit
from outlive.client.audit_log import AuditLog
from outlive.client.decision_links import Links
from outlive.client.keys import Keys

if TYPE_CHECKING:
    from outlive.client.client import Client


class Secured:
    """The part of an engine that says who may do what, and who did."""

    if TYPE_CHECKING:

        @property
        def _verbs(self) -> Client: ...

        _retention: tuple[Keep | KeepAudit, ...]

    @property
    def keys(self) -> Keys:
        """API keys: creates, lists and revokes them."""
        return Keys(self._verbs.access)

    @property
    def links(self) -> Links:
        """Links with which a person decides on an approval, once and without a key."""
        verbs = self._verbs
        return Links(verbs.access, verbs.approvals)

    @property
    def audit(self) -> AuditLog:
        """What people and keys did, from the store; see `engine.audit.acting`."""
        keep = next((keep for keep in self._retention if isinstance(keep, KeepAudit)), None)
        return AuditLog(self._verbs.access, keep)
