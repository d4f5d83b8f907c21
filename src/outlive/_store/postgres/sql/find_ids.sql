-- The ids of runs that are named by the handle of their journal and their number in it.
SELECT wanted.journal, wanted.number, run.id
FROM unnest($1::bigint[], $2::integer[]) AS wanted (journal, number)
JOIN {schema}.runs AS run ON run.key = CASE
    WHEN wanted.number = 0 THEN wanted.journal
    ELSE (
        SELECT child.key
        FROM {schema}.runs AS child
        WHERE child.journal = wanted.journal AND child.number = wanted.number AND child.number > 0
    )
END
