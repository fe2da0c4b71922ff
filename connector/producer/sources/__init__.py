"""The sources of a producer: a live server, its archive, or files.

- `source`: the interfaces `EventSource`, `Stream`, `Load`; the start of a stream for a position.
- `mysql`: a live server.
- `source_log`: its binary log: purged files from the archive, then the server's stream.
- `unknown_alone`: leaves out the transactions that the log has already, by their GTIDs.
- `watched_stream`: a stream whose server is checked from time to time.
- `files`: files of a binary log.
"""
