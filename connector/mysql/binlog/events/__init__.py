"""Bodies of the binary log's events, and the seam to the filters.

- `capture_filter`: the seam: what is captured
- `event_types`: names, and events that are skipped or refused
- `format_description`, `dialect`: layout of a file's events
- `table_map`, `tables`: tables of row events
- `query`: statements and their session; `statements`, `statement_values`, `load_data`: statement format
- `gtid_tagged`, `xa`, `payload`, `mariadb`: transactions
- `stream_messages`: heartbeats and errors of the dump
"""
