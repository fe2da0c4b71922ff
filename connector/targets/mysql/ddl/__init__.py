"""DDL on a MySQL target, where each statement commits by itself.

- `pending_ddl`: the DDL of the next commit that is not executed yet.
- `once`: executes DDL exactly once.
- `table_states`: tells by its tables whether a statement was executed.
- `operations`: DDL operations as statements.
- `source_ddl`: the statements of the source as it executed them.
- `statement_text`: what changes of their text.
- `other_statement`: statements about triggers and temporary tables.
- `auxiliary_ddl`: indexes by which rows are found, and tables of marks.
- `dictionary`: the tables that the server has, for DDL by hand.
- `unfit`: reads values, to find those that a narrower type would change.
"""
