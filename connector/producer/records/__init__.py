"""Completes the partial row images of a source (`binlog_row_image`) from a store of whole rows (`source.records.dir`).

- `completion`: completes the changes of each event, between the source and the encoder.
- `row_completer`: completes the rows of one table, and makes their versions; compiled.
- `row_errors`: the errors of rows that cannot be completed.
- `opening`: opens the store at the log's last event.
- `catch_up`: reads events of the log into it.
- `gauges`: the store's metrics.
- `report`: what `thl records` shows and does.
- `table_entry`: a table of the store, as it is stored.
- `source_rules`: the rules of the filters, by the names in the log.
- `filter_history`: the tables whose rows later filters publish otherwise.
- `published_defaults`: the defaults of columns, as rules publish them.
- `tables`: the tables as they are published, their definitions and defaults.
- `conversion`: versions of an earlier definition.
"""
