"""Pieces of transactions into Avro fragments, numbered and cut."""
