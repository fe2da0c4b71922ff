"""Transaction batches into Avro fragments, numbered and cut."""
