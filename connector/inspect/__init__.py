"""Reading events for people: of the log and of binary log files."""
