-- What every connection needs before anything else. Nothing here writes.
PRAGMA synchronous = FULL;
PRAGMA fullfsync = ON; -- macOS: there an ordinary fsync leaves the data in the cache of the disk.
PRAGMA trusted_schema = OFF;
PRAGMA cell_size_check = ON;
PRAGMA mmap_size = 0;
PRAGMA temp_store = MEMORY;
PRAGMA wal_autocheckpoint = 0;
PRAGMA journal_size_limit = 67108864;
PRAGMA cache_size = -16384;
PRAGMA foreign_keys = ON; -- For the tables of users; ours have none.
