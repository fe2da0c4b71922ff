"""What the producer reads: a live server, its archive, or files."""
