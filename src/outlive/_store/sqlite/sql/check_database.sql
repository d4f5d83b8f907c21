-- What SQLite finds wrong with its own file, at most 100 faults. A number that is bound would be the name of a table.
PRAGMA integrity_check(100)
