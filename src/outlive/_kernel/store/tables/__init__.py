"""The parts that the stores have in common.

A user's own tables in a SQLite database, written in the transaction of a step. The SQLite store keeps them in its file,
the in-memory store in a database of its own that no one else sees. Both give the same handle, so a step that is tested
on "memory:" runs as it is on "sqlite:".

* `guard`: what a step may not do to the database that its journal lies in.
* `statement`: one statement, with its parameters by number, and its rows.
* `handle`: the verbs for a task and for a thread.

Rules and columns of Outlive's own tables:

* `columns`, `rows`: the columns of a run, named once; columns to values of the model, and back.
* `journal_rows`: the rows that a batch appends, with their fences.
* `order`: which changes may be written at once.
* `claiming`: which of the runs that are due one claim takes.
"""
