"""The readers against damaged binary logs and invalid messages, for a given time: `make fuzz`."""
