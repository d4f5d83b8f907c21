-- Where a session lives and who keeps its lease, so that others can tell that it is over before the lease has run out.
ALTER TABLE workers
ADD COLUMN process text NOT NULL DEFAULT '',
ADD COLUMN lease text NOT NULL DEFAULT '';
