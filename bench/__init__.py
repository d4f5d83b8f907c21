"""Outlive measured beside its nearest rival and beside the bare driver, in one run on one machine."""
