"""The bytes of a message: framing, header, Avro primitives, row parts, checksums, shards and partitions.

- `framing`: the first bytes of a message, and the schema that they name.
- `first_fields`: the first fields of a fragment, as Python.
- `header`: a fragment's header, as Python.
- `header_reader`: reads a fragment's header; compiled.
- `fragment_reader`: headers of messages of this version's schema; checks whole messages.
- `message`: one message: its header decoded, its changes still bytes; compiled.
- `change_header`: walks changes by their headers; compiled.
- `row_parts`: joins the parts of a large change; compiled.
- `decoded_parts`: joins the parts of a large change that fastavro has decoded.
- `avro`: Avro's primitive encodings for Python.
- `avro_reader`: reads Avro from bytes that may be damaged; compiled.
- `avro_values`: writes Avro values; compiled.
- `varint`: Avro's numbers; compiled.
- `crc32`: CRC-32; compiled.
- `json_image`: row images as objects of JSON; compiled.
- `text`: writes JSON and Tungsten's layout into text that grows; compiled.
- `checked`: checks that decoded values are of the declared types.
- `shard`: the shard of an event, and the partition of a shard.
- `shard_rule`: the rules by which events get shards.
"""
