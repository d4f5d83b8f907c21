-- The rows of the trees in ?1, as bytes: a text that is damaged is not text any more.
SELECT CAST(json_array({run_names}) AS BLOB)
FROM (
    SELECT * FROM outlive_runs WHERE key IN (SELECT value FROM json_each(?1)) AND number <= 0
    UNION ALL
    SELECT * FROM outlive_runs WHERE journal IN (SELECT value FROM json_each(?1)) AND number > 0
)
ORDER BY number, key
