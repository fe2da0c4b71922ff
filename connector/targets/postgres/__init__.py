"""PostgreSQL as a target.

- `kind`: opens and checks the target.
- `connection`: sessions.
- `target`: the target itself.
- `pending`: the operations and staged rows of the next commit.
- `staging`: temporary tables for row changes.
- `copy`: rows in the binary COPY format; compiled.
- `copy_buffer`: the growing buffer of COPY; compiled.
- `copy_numbers`: numbers in COPY's format; compiled.
- `copy_text`: text in COPY's format; compiled.
- `copy_times`: dates and times in COPY's format; compiled.
- `divided_commit`: commits of several writers, and the intent that makes them one.
- `writer`: the sessions of these writers.
- `changed_by_others`: tables whose changes go by one connection, and keys that cannot be compared.
- `snapshots`: exports snapshots for readers beside several writers.
- `merge`: the statements from staging to a table.
- `missing`: the rows that a merge does not find.
- `ddl`: applies DDL operations.
- `literals`: values as SQL expressions, and the DEFAULT of a column.
- `indexes`: PostgreSQL's indexes for a table's secondary indexes.
- `build_indexes`: builds and drops these indexes, after a commit.
- `probes`: finds values that a new type would change.
- `types`: PostgreSQL's types for MySQL's.
- `names`: names of tables and columns, quoted.
- `commit_steps`: the statements of a commit that write the bookkeeping.
- `bookkeeping`: the schema `thl`.
- `signal_table`: the session for the signal tables.
- `errors`: PostgreSQL's errors as the connector's.
"""
