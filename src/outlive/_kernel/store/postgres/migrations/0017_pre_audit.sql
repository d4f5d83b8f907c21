-- Who did what: one chain of rows. `actor`, `verb` and `target` stand in `body` too, which is what the hash is over.
CREATE TABLE audit (
    number bigint PRIMARY KEY, -- From 1 on, without a gap.
    at bigint NOT NULL,
    actor text COLLATE "C" NOT NULL,
    verb text COLLATE "C" NOT NULL,
    target text COLLATE "C" NOT NULL,
    body text COLLATE "C" NOT NULL,
    hash text COLLATE "C" NOT NULL
);

-- By a hash: a target may be longer than an entry of an index.
CREATE INDEX audit_target ON audit (md5(target), number);
