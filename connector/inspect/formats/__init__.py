"""Formats of printed events.

- `printing`: chooses the format of a fragment.
- `tungsten`: a fragment as text in Tungsten's layout.
- `session_values`: the session values of a statement in Tungsten's layout.
- `specs`: a column as Tungsten's `-specs` shows it.
- `value_text`: values as Tungsten's `-charset` and `-hex` show them.
- `sql`: fragments as SQL.
- `sql_session`: the session that executes them.
- `sql_rows`: changes of rows as SQL.
- `sql_literals`: values as SQL.
- `as_json`: a fragment as JSON.
- `container`: fragments as a file of Avro.
- `tungsten_event`: a transaction of a binary log file as text in Tungsten's layout.
- `tungsten_rows`: its rows; compiled.
- `json_event`: a transaction of a binary log file as JSON.
- `json_rows`: its rows; compiled.
- `sql_event`: a transaction of a binary log file as SQL to execute.
- `rows`: the loop over rows that both share.
"""
