"""The store on one SQLite file.

Theory, from the bottom up
--------------------------
* `file`: where the file is, and whether a database can be there.
* `connection`: how a connection is opened, what its errors mean, and why a fork may not use it.
* `migrate`: the schema, brought up to date by numbered files.
* `thread`, `writer`: one thread writes, one reads, and one finds runs by filters, which may take long. Everything that
  is queued while a commit is under way goes into the next transaction together (group commit).
* `batch`: a change of any number of trees as a handful of statements. The engine's own thread is busy with Python
  most of the time, and SQLite releases the interpreter lock for every step of a statement: a hundred small
  statements would wait a hundred times for their turn (5 ms each), one statement for a hundred rows waits
  once. For the same reason most reads come as one row of JSON.
* `transaction`: a step that writes in the same file, in the transaction of its journal.
* `commit`, `inbox`, `claim`, `read`, `beat`, `cells`, `checkpoints`: the verbs of the contract.
* `lock`: who is alive, seen by the kernel.
"""

from outlive._kernel.store.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
