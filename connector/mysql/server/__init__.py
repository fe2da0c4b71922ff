"""SQL sessions with the source: facts, state, privileges, and the dump of its binary log."""
