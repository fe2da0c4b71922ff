"""The readers against damaged binary logs and wrong messages, for as long as one likes: `make fuzz`."""
