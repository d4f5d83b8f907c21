"""Histories that every later Outlive must be able to replay."""
