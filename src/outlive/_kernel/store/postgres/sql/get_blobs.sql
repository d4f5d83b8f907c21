SELECT blob.id, blob.data FROM {schema}.blobs AS blob WHERE blob.id = ANY ($1::text[])
