"""MySQL and MariaDB as targets.

- `entrance`: opens, checks and reads the target, for `targets.open`.
- `target`: the target itself.
- `claim`: the claim of a target.
- `fence`: ends the session of an older applier.
- `open_transaction`: the transaction of the next commit.
- `bookkeeping`: the database `thl`.
- `progress`: reads the position and heartbeats from outside.
- `signal_table`: the session for the signal tables.
- `logged_statements`: executes changes that were logged as statements.
- `statement_session`: the session of such a change: its options, variables and text.
- `ddl/`: DDL, each statement exactly once.
- `rows/`: the row changes of a table.
- `server/`: sessions with the server, and what it tells of its tables and errors.
- `sql/`: names, types and values as MySQL writes them.
"""
