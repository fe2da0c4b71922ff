"""The relay: what an applier is about to apply, on a local disk, in THL's files.

- `record`: a record's bytes, made of messages.
- `spool`: records on their way from a task to the driver.
- `frames`: a record's bytes, read.
- `folder`: the folder: its lock, and its files with their first records.
- `event_store`: the seam between the apply core and the writer; a store of nothing.
- `cut_back`: cuts the files back to the target's position, where the writer continues.
- `appending`: appends records to a file, on a thread.
- `record_appender`: the newest file, and what is not synced yet.
- `writer`: writes what is applied next, before it is committed on the target.
- `reader`: reads whole events in the order of the log.
- `purge`: `thl purge`: deletes events.
"""
