"""Formats of printed events.

- `printing`: chooses the format of a fragment.
- `tungsten`: a fragment as text in Tungsten's layout.
- `specs`: a column as Tungsten's `-specs` shows it.
- `as_json`: a fragment as JSON.
- `container`: fragments as a file of Avro.
- `tungsten_event`: a transaction of a binary log file as text in Tungsten's layout.
- `tungsten_rows`: its rows; compiled.
- `json_event`: a transaction of a binary log file as JSON.
- `json_rows`: its rows; compiled.
- `sql_event`: a transaction of a binary log file as SQL to execute.
- `rows`: the loop over rows that both share.
"""
