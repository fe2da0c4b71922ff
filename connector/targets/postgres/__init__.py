"""PostgreSQL as a target.

- `kind`: opens and checks the target; `connection`: sessions.
- `target`: the target itself.
- `staging`: temporary tables for row changes; `copy`: rows in the binary COPY format.
- `merge`: the statements from staging to a table; `missing` names the rows that they do not find.
- `ddl`: applies DDL operations; `probes` finds values that a new type would change.
- `types`, `names`: PostgreSQL's types for MySQL's, and quoted names.
- `bookkeeping`: the schema `thl`.
- `signal_table`: the session for the signal tables.
- `errors`: PostgreSQL's errors as the connector's.
"""
