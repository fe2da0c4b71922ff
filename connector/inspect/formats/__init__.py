"""Formats of printed events.

- `printing`: chooses the format of a fragment. `tungsten`, `specs`: text in Tungsten's layout.
  `as_json`: JSON. `container`: Avro.
- `tungsten_event`, `tungsten_rows`, `json_event`, `json_rows`: transactions of binary log files; `rows`: their rows.
"""
