"""Encodes transaction batches as Avro fragments, numbered and cut.

encoder         batches in, numbered fragments out
event           the event that is being encoded
numbering       sizes, shards and the next number, as the encoder gets them
routes          partition, key and metadata of a shard's events
fragment_plan   cuts an event into fragments
row_parts       cuts a change that is too large for one message
fragment        a fragment's bytes
change          a change's bytes; change_headers: those before the rows, encoded once
stored          batches of prepared XA transactions, as the topic of them keeps them
"""
