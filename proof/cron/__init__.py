"""Cron expressions in all time zones, held against a second implementation that is written from the definition."""
