"""The kernel: what moves runs. A person who wants to understand durability reads this and nothing else."""
