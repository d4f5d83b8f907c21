"""How long ended runs and the audit log are kept, and the archives that runs are written to.

    engine = outlive.Engine(url, retention=[outlive.retention.Keep("order", succeeded=timedelta(days=7))])

`Keep` is for runs, `KeepAudit` for the audit log. Unless one says otherwise, both stay for ever.
"""

from outlive._features.retention.archive import read_archive
from outlive._kernel.model.retention import Keep, KeepAudit

__all__ = ["Keep", "KeepAudit", "read_archive"]
