"""Reading of the log by those who are no target: whole transactions, in order, without Spark."""
