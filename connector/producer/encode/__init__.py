"""Encodes transaction batches as numbered Avro fragments.

- `encoder`: encodes batches as numbered fragments.
- `event`: the event that is being encoded.
- `numbering`: the encoder's settings: sizes, shards and the next number.
- `routes`: partition, key and metadata of a shard's events; compiled.
- `fragment_plan`: cuts an event into fragments.
- `row_parts`: cuts a change that is too large for one message.
- `fragment`: a fragment's bytes.
- `change`: the bytes of a change.
- `change_headers`: the bytes of changes before their rows, encoded once; compiled.
- `stored`: the batches of prepared XA transactions in their topic.
"""
