"""What every worker does now and then for the whole store, and none of them leads: each service is safe when all
workers do it at the same time, because what it writes is one transaction that the first of them wins."""
