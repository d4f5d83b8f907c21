-- The index of lists, with the number itself beside the expression over it: only then does PostgreSQL see that a count needs
-- no row.
DROP INDEX runs_workflow_status_number_created_at;

CREATE INDEX runs_workflow_status_number_created_at ON runs (workflow, status, (number > 0), created_at, id)
INCLUDE (number);
