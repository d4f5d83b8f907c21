-- The names of the workflows that have runs of the wanted groups.
{groups}
SELECT DISTINCT groups.workflow FROM groups WHERE {wanted_groups} ORDER BY groups.workflow
