"""DDL statements of the source as operations on a target's tables.

- `plan`: the operations of a statement.
- `create`, `alter`: CREATE TABLE and ALTER TABLE.
- `session`: the session that ran a statement.
- `column_defaults`: values of new columns in existing rows.
- `literals`, `characters`: literals of a statement, and text in MySQL's character sets.
- `conversions`, `conversion_times`: literals as values of a column.
- `by_hand`: DDL that a user has applied by hand.
"""
