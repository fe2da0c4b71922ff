"""A folder with the source's binary log files.

- `archive`: the folder.
- `archiver`: `thl archive`, which fills the folder.
- `archived_log`: reads a log from the folder first, then from the server.
- `file_identity`: distinguishes files of the same name.
"""
