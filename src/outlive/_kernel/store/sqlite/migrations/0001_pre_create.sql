-- The whole schema of the first release.
--
-- A handle of a journal is the key of its root run. AUTOINCREMENT: a handle is never given out twice, so a writer
-- that was asleep while a tree was deleted cannot write into another one.

PRAGMA application_id = 1333097580; -- "Outl"

CREATE TABLE outlive_migrations (
    version INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    applied_at INTEGER NOT NULL
) STRICT;

CREATE TABLE outlive_runs (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL,
    journal INTEGER NOT NULL,
    number INTEGER NOT NULL,
    root_id TEXT NOT NULL,
    parent_id TEXT,
    workflow TEXT NOT NULL,
    version INTEGER NOT NULL,
    definition TEXT NOT NULL GENERATED ALWAYS AS (workflow || '@' || version) VIRTUAL,
    nonce INTEGER NOT NULL,
    status TEXT NOT NULL,
    waits TEXT,
    wake_at INTEGER,
    owner TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    finished_at INTEGER,
    timeout_at INTEGER,
    tags TEXT,
    reason TEXT NOT NULL,
    result TEXT,
    failure TEXT
) STRICT;

CREATE UNIQUE INDEX outlive_runs_id ON outlive_runs (id);

-- Claiming. Ended, parked and signal-only runs have no wake-up and are not in here, however many there are.
CREATE INDEX outlive_runs_owner_definition_wake_at ON outlive_runs (owner, definition, wake_at)
WHERE wake_at IS NOT NULL AND number = 0;

-- Listing. One index for every mixture of workflow, status and roots only: a list is the merge of a few ranges of
-- it. A run touches it when it is created and when its status changes.
CREATE INDEX outlive_runs_workflow_status_number_created_at ON outlive_runs (workflow, status, number > 0, created_at);

-- A root is found by its key; only children need these two.
CREATE UNIQUE INDEX outlive_runs_journal_number ON outlive_runs (journal, number) WHERE number > 0;

CREATE INDEX outlive_runs_parent_id_created_at ON outlive_runs (parent_id, created_at) WHERE parent_id IS NOT NULL;

-- Only runs with tags pay for this.
CREATE TABLE outlive_tags (
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    run_key INTEGER NOT NULL,
    PRIMARY KEY (name, value, created_at, run_key)
) STRICT, WITHOUT ROWID;

-- Events lie in the order in which they came, and only the small index is ordered by journal: a commit of one
-- event for each of a hundred runs then changes a handful of pages instead of a hundred.
CREATE TABLE outlive_events (
    key INTEGER PRIMARY KEY,
    journal INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    format INTEGER NOT NULL,
    crc INTEGER NOT NULL,
    is_last INTEGER NOT NULL, -- 1: the tree ended with this event, nothing can follow it.
    body BLOB NOT NULL
) STRICT;

CREATE UNIQUE INDEX outlive_events_journal_seq ON outlive_events (journal, seq);

-- AUTOINCREMENT: the id of a consumed message never comes back.
CREATE TABLE outlive_inbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    journal INTEGER NOT NULL,
    run INTEGER NOT NULL,
    kind TEXT NOT NULL,
    at INTEGER NOT NULL,
    name TEXT NOT NULL,
    key TEXT NOT NULL,
    payload TEXT,
    ended TEXT
) STRICT;

CREATE INDEX outlive_inbox_journal ON outlive_inbox (journal);

-- Keys of messages outlive the messages.
CREATE TABLE outlive_inbox_keys (
    journal INTEGER NOT NULL,
    key TEXT NOT NULL,
    PRIMARY KEY (journal, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE outlive_items (
    journal INTEGER NOT NULL,
    run INTEGER NOT NULL,
    "index" INTEGER NOT NULL,
    result TEXT,
    failure TEXT,
    PRIMARY KEY (journal, run, "index")
) STRICT, WITHOUT ROWID;

CREATE TABLE outlive_blobs (
    id TEXT PRIMARY KEY,
    data BLOB NOT NULL
) STRICT;

CREATE TABLE outlive_workers (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    definitions TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    is_retired INTEGER NOT NULL,
    lock_file INTEGER -- The inode of the file that this worker has locked a byte of; NULL: only its lease counts.
) STRICT;
