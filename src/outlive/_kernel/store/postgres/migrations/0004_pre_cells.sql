-- Small things that all workers of a store share: what breakers and rate limits remember. No data: nobody has written it
-- yet, and whoever is about to has the row to lock.
CREATE TABLE cells (
    name text COLLATE "C" PRIMARY KEY,
    data bytea
) WITH (fillfactor = 50);
