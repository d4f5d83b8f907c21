-- Tell those that listen to the channel $1.
SELECT pg_notify($1::text, $2::text)
