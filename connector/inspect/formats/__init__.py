"""Formats of printed events: what is printed is a fragment of the log, or a transaction of binary log files.

The files are named by format, then by what they print: both halves of a format share its values and its layout.

- `printing`: chooses the format of a fragment.
- `tungsten`: Tungsten's layout, and a fragment in it.
- `tungsten_transaction`: a transaction in this layout.
- `tungsten_rows`: its rows; compiled.
- `tungsten_specs`: a column as Tungsten's `-specs` shows it.
- `tungsten_values`: values as Tungsten's `-charset` and `-hex` show them.
- `session_values`: the session values of a statement, in Tungsten's layout and in SQL.
- `sql_fragments`: fragments as SQL.
- `sql_session`: the session that executes them.
- `sql_rows`: changes of rows as SQL.
- `sql_literals`: values as SQL.
- `sql_transaction`: a transaction as SQL to execute.
- `json_fragment`: a fragment as JSON.
- `json_transaction`: a transaction as JSON.
- `json_rows`: its rows; compiled.
- `avro_container`: fragments as a file of Avro.
- `rows`: the loop over rows that JSON and Tungsten's layout share.
"""
