"""DDL statements of the source, and the edges of loads, as operations on a target's tables.

- `plan`: the operations of a statement.
- `planned`: plans the statements of an event for a target.
- `create`: CREATE TABLE.
- `alter`: ALTER TABLE.
- `session`: the session that ran a statement.
- `column_defaults`: values of new columns in existing rows.
- `literals`: literals of a statement.
- `characters`: text in MySQL's character sets.
- `conversions`: literals as values of a column.
- `conversion_times`: literals as dates and times.
- `loads`: the load of a table among the events of the stream.
- `by_hand`: DDL that a user has applied by hand.
"""
