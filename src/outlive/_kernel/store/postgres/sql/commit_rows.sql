-- Append events and nothing else: the cheapest way for the most frequent change. The same fence as in commit_changes.
INSERT INTO {schema}.events (journal, crc, seq, format, is_last, body)
SELECT
    new.journal,
    new.crc,
    new.seq,
    (
        SELECT new.format
        FROM {schema}.events AS prior
        WHERE prior.journal = new.journal AND prior.seq = new.after AND NOT prior.is_last
            AND prior.crc = new.prior
    ),
    false,
    new.body
FROM unnest($1::bigint[], $2::integer[], $3::integer[], $4::bigint[], $5::smallint[], $6::bigint[], $7::bytea[])
    AS new (journal, seq, after, prior, format, crc, body)
