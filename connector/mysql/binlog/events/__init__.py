"""The bodies of the binary log's events, a file a kind."""
