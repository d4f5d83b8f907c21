-- Small things that all workers of a store share: what breakers and rate limits remember.
CREATE TABLE outlive_cells (
    name TEXT PRIMARY KEY,
    data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
