"""How long ended runs and the audit log are kept, and the archives that runs are written to.

    engine = outlive.Engine(url, retention=[outlive.retention.Keep("order", succeeded=timedelta(days=7))])

`Keep` is for runs, `KeepAudit` for the audit log. Unless one says otherwise, both stay for ever.
"""

from outlive._model.retention import Keep, KeepAudit
from outlive.client.archive import read_archive

__all__ = ["Keep", "KeepAudit", "read_archive"]
