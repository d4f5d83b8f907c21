-- A few free pages, from the end of the file.
PRAGMA incremental_vacuum(64)
