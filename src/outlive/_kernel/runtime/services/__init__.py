"""The services that every worker runs now and then for the whole store, without a leader: each is safe when all workers
run it at the same time, because its write is one transaction that the first of them wins."""
