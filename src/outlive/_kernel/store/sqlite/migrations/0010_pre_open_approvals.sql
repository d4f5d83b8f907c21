-- What a run asks people for and has no decision on; NULL for nearly all. Rows that exist are not touched.
ALTER TABLE outlive_runs ADD COLUMN approvals TEXT;

-- A run that asks is found in the table of waits, by '@approval', and by '@assignee/' and the name of each person.
CREATE TRIGGER outlive_runs_approvals_inserted AFTER INSERT ON outlive_runs WHEN NEW.approvals IS NOT NULL
BEGIN
    INSERT OR IGNORE INTO outlive_waits (name, created_at, run_key) VALUES ('@approval', NEW.created_at, NEW.key);
    INSERT OR IGNORE INTO outlive_waits (name, created_at, run_key)
    SELECT '@assignee/' || node.value, NEW.created_at, NEW.key
    FROM json_tree(iif(json_valid(NEW.approvals), NEW.approvals, '[]')) AS node
    WHERE node.path LIKE '%.assignees' AND node.type = 'text';
END;

CREATE TRIGGER outlive_runs_approvals_updated AFTER UPDATE OF approvals ON outlive_runs
WHEN OLD.approvals IS NOT NEW.approvals
BEGIN
    DELETE FROM outlive_waits
    WHERE
        (name, created_at, run_key) IN (
            SELECT '@approval', OLD.created_at, OLD.key
            UNION ALL
            SELECT '@assignee/' || node.value, OLD.created_at, OLD.key
            FROM json_tree(iif(json_valid(OLD.approvals), OLD.approvals, '[]')) AS node
            WHERE node.path LIKE '%.assignees' AND node.type = 'text'
        );
    INSERT OR IGNORE INTO outlive_waits (name, created_at, run_key)
    SELECT '@approval', NEW.created_at, NEW.key WHERE NEW.approvals IS NOT NULL
    UNION ALL
    SELECT '@assignee/' || node.value, NEW.created_at, NEW.key
    FROM json_tree(iif(json_valid(NEW.approvals), NEW.approvals, '[]')) AS node
    WHERE node.path LIKE '%.assignees' AND node.type = 'text';
END;

CREATE TRIGGER outlive_runs_approvals_deleted AFTER DELETE ON outlive_runs WHEN OLD.approvals IS NOT NULL
BEGIN
    DELETE FROM outlive_waits
    WHERE
        (name, created_at, run_key) IN (
            SELECT '@approval', OLD.created_at, OLD.key
            UNION ALL
            SELECT '@assignee/' || node.value, OLD.created_at, OLD.key
            FROM json_tree(iif(json_valid(OLD.approvals), OLD.approvals, '[]')) AS node
            WHERE node.path LIKE '%.assignees' AND node.type = 'text'
        );
END;
