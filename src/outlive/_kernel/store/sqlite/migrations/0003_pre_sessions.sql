-- Where a session lives and who keeps its lease, so that others can tell that it is over before the lease has run out.
ALTER TABLE outlive_workers ADD COLUMN process TEXT NOT NULL DEFAULT '';
ALTER TABLE outlive_workers ADD COLUMN lease TEXT NOT NULL DEFAULT '';
