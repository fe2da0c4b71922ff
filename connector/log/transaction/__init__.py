"""A source's transactions as types: batches, table layouts, offsets, GTIDs and positions."""
