-- The runs that one worker owns. Only roots have an owner.
{schema}.runs AS run
WHERE run.owner = :owner::text AND run.owner <> '' AND run.number = 0
