-- The answers to messages with these keys to these runs, with the place of each in the question.
SELECT ask.place, seen.answer
FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS ask (run_id, key, place)
JOIN {schema}.runs AS run ON run.id = ask.run_id
JOIN {schema}.inbox_keys AS seen ON seen.journal = run.journal AND md5(seen.key) = md5(ask.key)
