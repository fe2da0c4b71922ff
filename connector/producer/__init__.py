"""`thl produce`: a source's transactions into the log."""
