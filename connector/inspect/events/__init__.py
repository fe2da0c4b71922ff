"""Events of the log as Kafka holds them, for the commands that print them."""
