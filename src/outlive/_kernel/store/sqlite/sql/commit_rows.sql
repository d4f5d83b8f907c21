-- Append events: (journal, seq, after, prior, format, crc, is_last, body), any number of them; rows of NULLs are padding.
--
-- The fence. `format` comes through the event `after` which the change builds on. If that event does not exist, has
-- another checksum than `prior`, or ended its tree, `format` is NULL and the statement fails as a whole; so it does when `seq` is taken already.
INSERT INTO outlive_events (journal, seq, format, crc, is_last, body)
SELECT
    new.column1,
    new.column2,
    iif(new.column3 < 0, new.column5, (
        SELECT new.column5
        FROM outlive_events AS prior
        WHERE prior.journal = new.column1 AND prior.seq = new.column3 AND NOT prior.is_last
            AND prior.crc = new.column4
    )),
    new.column6,
    new.column7,
    new.column8
FROM (VALUES (?, ?, ?, ?, ?, ?, ?, ?)) AS new
WHERE new.column1 IS NOT NULL
