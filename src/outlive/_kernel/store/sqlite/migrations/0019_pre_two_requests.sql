-- A child run may ask people who have an open request of it. Its row is written by an upsert, and the OR IGNORE of a
-- trigger does not count in an upsert: each entry must be inserted once.
DROP TRIGGER outlive_runs_approvals_updated;

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
    UNION
    SELECT '@assignee/' || node.value, NEW.created_at, NEW.key
    FROM json_tree(iif(json_valid(NEW.approvals), NEW.approvals, '[]')) AS node
    WHERE node.path LIKE '%.assignees' AND node.type = 'text';
END;
