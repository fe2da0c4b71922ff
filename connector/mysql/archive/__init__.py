"""The binary log's files kept in a folder, and read from there."""
