"""Bodies of the binary log's events, and two seams.

- `capture_filter`: the seam to the filters: what is captured.
- `column_names`: the seam to column names that a TABLE_MAP lacks, and resolvers that need no history.
- `event_types`: names, and events that are skipped or refused.
- `format_description`: the event with which a file begins.
- `dialect`: the layout of a file's events.
- `table_map`: tables of row events.
- `tables`: TABLE_MAP events, and the header of rows events; compiled.
- `query`: statements and their session.
- `statements`: statements of statement format.
- `statement_values`: the values with which a statement was executed.
- `load_data`: LOAD DATA in statement format.
- `binlog_statement`: rows as a BINLOG statement, to execute them again.
- `old_load`: LOAD DATA before MySQL 5.0.3.
- `gtid_tagged`: tagged GTIDs.
- `xa`: XA transactions.
- `payload`: compressed transactions.
- `mariadb`: events of MariaDB alone.
- `stream_messages`: heartbeats and errors of the dump.
"""
