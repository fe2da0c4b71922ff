"""MySQL and MariaDB as targets.

- `kind`: opens and checks the target.
- `target`: the target itself.
- `fence`: ends the session of an older applier.
- `once`: executes DDL exactly once.
- `ddl`: DDL operations as statements.
- `source_ddl`: the statements of the source as it executed them.
- `table_facts`: what a table does with rows by itself.
- `rows`: applies row changes, and names the rows that a change does not find.
- `partial_rows`: rows of which the log has only some columns.
- `literals`: single values as literals.
- `marks`: the keys that were written since a table's load began.
- `commit_statements`: the statements of a commit that write the bookkeeping.
- `bookkeeping`: the database `thl`.
- `signal_table`: the session for the signal tables.
- `progress`: reads the position and heartbeats from outside.
- `dictionary`: the tables that the server has, for DDL by hand.
- `unfit`: reads values, to find those that a narrower type would change.
- `names`: names of databases, tables and columns.
- `types`: types and collations.
- `sql_values`: row images as literals; compiled.
- `json_exact`: JSON documents whose numbers stay as they are.
- `connection`: sessions with the server.
- `errors`: MySQL's errors as the connector's.
"""
