"""Other programs on the same servers with the same workloads: see README.md beside this file."""
