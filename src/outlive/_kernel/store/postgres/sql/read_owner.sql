-- Who owns schema $1, as SQL has the name.
SELECT quote_ident(pg_get_userbyid(space.nspowner)) AS owner FROM pg_namespace AS space WHERE space.nspname = $1
