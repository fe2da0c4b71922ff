"""The source's tables as they were at a place of the log."""
