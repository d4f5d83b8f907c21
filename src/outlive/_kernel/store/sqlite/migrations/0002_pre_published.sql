-- What a run says of itself; NULL costs nothing, and rows that exist are not touched.
ALTER TABLE outlive_runs ADD COLUMN published TEXT;
