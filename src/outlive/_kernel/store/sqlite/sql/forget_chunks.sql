-- Items of streams of child runs that a snapshot stands for.
DELETE FROM outlive_stream_chunks
WHERE stream IN (SELECT stream.key FROM outlive_streams AS stream WHERE stream.journal = ?1 AND stream.run > 0 AND stream.run < ?2)
