"""The store in one schema of a PostgreSQL database.

Theory, from the bottom up
--------------------------
* `address`: where it is. `fault`: what the errors of a connection mean. `connection`, `pool`: few of them, and none of
  them precious.
* `query`: statements and migrations, for one schema. `rows`: rows to values and back.
* `migrate`: the schema brought up to date, and the servers that we refuse.
* `batch`, `commit`: a change of any number of trees as ONE statement without a transaction around it. A batch of
  nothing but events is an INSERT of arrays; everything else is one call of a function that lies in the database
  (`commit_changes` in migrations/): a handful of statements there, one round trip for us. The fence (the event before
  exists, and did not end its tree) and the unique key (journal, seq) are in the INSERT itself.
* `claim`, `read`, `checkpoints`: the other verbs. `beat`: the lease, from another thread. `listen`: NOTIFY as a hint.
* `transaction`, `join`: sharing a transaction with a user, ours for them and theirs for us.
* `time`: the server's clock decides about leases and what is due; the fence knows no clock.

What may run at the same time
-----------------------------
A root row is locked by the worker that releases its tree and by the sender of a message, before they look: so one of
the two sees what the other wrote, and no wake-up is lost. Locks are taken in the order of keys, then ids, then
events, then blobs. Claiming skips what is locked.
"""

from outlive._kernel.store.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
