-- Who did what: one chain of rows. `actor`, `verb` and `target` stand in `body` too, which is what the hash is over.
CREATE TABLE outlive_audit (
    number INTEGER PRIMARY KEY, -- From 1 on, without a gap.
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    verb TEXT NOT NULL,
    target TEXT NOT NULL,
    body TEXT NOT NULL,
    hash TEXT NOT NULL
) STRICT;

CREATE INDEX outlive_audit_target ON outlive_audit (target, number);
