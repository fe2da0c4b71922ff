"""Filters and rules of the configuration, applied to tables, rows and definitions."""
