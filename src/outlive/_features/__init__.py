"""Features: each folder holds everything that is one feature's own, and what moves runs knows none of them."""
