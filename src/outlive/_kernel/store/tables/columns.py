"""The columns of a run, and its statuses, named once for every statement that reads or writes them.

A file of SQL has them in braces: `INSERT INTO runs ({run_names})`. A new column is a line in `RUN`, a migration, and
its place in `rows`. A column that never changes stands before `status`; one that can change stands behind it, because
everything from `status` on is written again whenever the run changes.
"""

from __future__ import annotations

from collections.abc import Iterable

from outlive._kernel.model import RunStatus
from outlive._kernel.model.run import INTERNAL, STORED

RUN = {
    "key": "bigint",
    "id": "text",
    "journal": "bigint",
    "number": "integer",
    "root_id": "text",
    "parent_id": "text",
    "workflow": "text",
    "version": "bigint",
    "nonce": "bigint",
    "created_at": "bigint",
    "tags": "text",
    "queue": "text",
    "queue_key": "text",
    "lead": "bigint",
    "slots": "bigint",
    "status": "text",
    "waits": "text",
    "wake_at": "bigint",
    "owner": "text",
    "epoch": "bigint",
    "attempts": "bigint",
    "updated_at": "bigint",
    "finished_at": "bigint",
    "timeout_at": "bigint",
    "reason": "text",
    "result": "text",
    "failure": "text",
    "published": "text",
    "approvals": "text",
    "slot": "smallint",
    "timeout": "bigint",
    "begin_by": "bigint",
}
"""With their types in PostgreSQL, in the order in which they are passed."""
RUN_COLUMNS = tuple(RUN)
CHILD_COLUMNS = RUN_COLUMNS[1:]
"""The key of a child is its own: the database makes it."""
STATE_COLUMNS = RUN_COLUMNS[RUN_COLUMNS.index("status") :]
"""The columns that can change while a run lives."""


def listed(names: Iterable[str], form: str = "{}") -> str:
    """Something for each column, with commas between."""
    return ", ".join(form.format(name) for name in names)


def _statuses(wanted: Iterable[RunStatus]) -> str:
    return "({})".format(listed((status.value for status in wanted), "'{}'"))


def _internal(table: str) -> str:
    return "({})".format(" OR ".join(f"{table}.workflow LIKE '{prefix}%'" for prefix in INTERNAL))


WORDS = {
    "internal_run": _internal("run"),
    "internal_group": _internal("groups"),
    "ended": _statuses(status for status in STORED if status.is_terminal),
    "alive": _statuses(status for status in STORED if not status.is_terminal),
    "stored": _statuses(STORED),
    "final": "ARRAY[{}]".format(
        listed((each.value for each in STORED if each.is_terminal and each is not RunStatus.CONTINUED), "'{}'")
    ),
    "run_names": listed(RUN_COLUMNS),
    "child_names": listed(CHILD_COLUMNS),
    "run_columns": listed(RUN_COLUMNS, "run.{}"),
    "run_set": listed(CHILD_COLUMNS, "{0} = excluded.{0}"),
    "state_set": listed(STATE_COLUMNS, "{0} = excluded.{0}"),
}
"""The values for the words that stand in braces in the files of both databases."""
