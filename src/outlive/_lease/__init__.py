"""Who is alive: the contract of leases, and what keeps them."""
