"""The bytes of a message: framing, header, Avro primitives, row parts, checksums, shards and partitions."""
