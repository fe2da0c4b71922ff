"""The reader against damaged logs, for as long as one likes: `make fuzz`."""
