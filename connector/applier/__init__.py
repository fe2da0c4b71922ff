"""`thl apply`: the log into a target, and everything that steers it."""
