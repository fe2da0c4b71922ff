"""The initial load: the tables as they were at one point of the log."""
