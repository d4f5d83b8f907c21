-- These blobs are put or in use now. First of all, and before they are put: it waits for a caller that deletes one of
-- them, which is then put once more, and one that deletes later sees it. Most are not written.
CREATE FUNCTION {remember_blobs}(p_now bigint, p_id text[]) RETURNS void LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan
AS $body$
BEGIN
    PERFORM FROM {schema}.blobs
    WHERE id = ANY (p_id) AND kept_at < p_now - {blob_refresh}
    ORDER BY id
    FOR NO KEY UPDATE;
    UPDATE {schema}.blobs SET kept_at = p_now WHERE id = ANY (p_id) AND kept_at < p_now - {blob_refresh};
END
$body$;
