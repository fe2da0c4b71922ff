"""A folder with the source's binary log files.

- `archive`: the folder; `archiver`: `thl archive`, which fills it
- `archived_log`: reads a log from the folder first, then from the server
- `file_identity`: tells files of one name apart
"""
