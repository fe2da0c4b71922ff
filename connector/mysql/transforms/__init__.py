"""Filters and rules of the configuration.

- `filters`: which tables, rows and definitions are captured.
- `table_rules`: a table's rule, compiled into a row transform.
"""
