"""MySQL and MariaDB as targets.

- `kind`: opens and checks the target.
- `target`: the target itself.
- `claim`: the claim of a target.
- `fence`: ends the session of an older applier.
- `open_transaction`: the transaction of the next commit.
- `pending_ddl`: the DDL of the next commit that is not executed yet.
- `once`: executes DDL exactly once.
- `ddl`: DDL operations as statements.
- `source_ddl`: the statements of the source as it executed them.
- `table_facts`: what a table does with rows by itself.
- `rows`: applies row changes, and names the rows that a change does not find.
- `partial_rows`: rows of which the log has only some columns.
- `literals`: single values as literals.
- `marks`: the keys that were written since a table's load began.
- `auxiliary_ddl`: indexes by which rows are found, and tables of marks.
- `bookkeeping`: the database `thl`.
- `signal_table`: the session for the signal tables.
- `dictionary`: the tables that the server has, for DDL by hand.
- `unfit`: reads values, to find those that a narrower type would change.
- `names`: names of databases, tables and columns.
- `types`: types and collations.
- `sql_values`: row images as literals; compiled.
- `json_exact`: JSON documents whose numbers stay as they are.
- `connection`: sessions with the server.
- `errors`: MySQL's errors as the connector's.
"""
