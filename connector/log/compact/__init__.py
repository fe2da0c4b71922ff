"""Compacts whole events to net changes per key, in the applier and in Spark's tasks alike.

- `scan`: verifies and decodes the headers of a batch of messages; compiled.
- `compact`: compacts row changes by key; compiled.
- `table_changes`: the changes of one table, by key or by row; compiled.
- `table_images`: the images of its net changes; compiled.
- `merge_partial`: the same for tables whose images lack columns; compiled.
- `join`: joins the net changes of several segments; compiled.
- `key_order`: puts net changes in the order of their keys; compiled.
- `row_keys`: the keys of rows; compiled.
- `without_rows`: messages of loads for other targets without their rows.
- `history`: tables with each change of a row.
- `history_rows`: the rows of one of them; compiled.
- `segment`: whole events of a partition, reduced to net changes by a task.
- `net_changes`: the net changes, as a target gets them.
- `metadata_columns`: columns of a target with the transaction that wrote a row.
- `metadata_values`: the values of those columns for one event; compiled.
"""
