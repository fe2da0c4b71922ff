"""Net operations into a target database, with its position, in one target transaction."""
