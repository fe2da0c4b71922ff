"""`thl verify --repair`: mends the rows that a comparison has found, through the log.

A repair is a load of some keys alone (`connector.log.epochs.loads.LoadRequest`): the producer reads them at one
position of the source, and the applier replaces what the target has under them there. So what is mended is exact while
replication goes on, and on every target that the repair is for.

- `repairs`: the keys to ask for, and what only a load mends.
- `mending`: asks, and waits.

The comparison itself (`verify`) shares nothing with this, nor with anything else that moves the data.
"""
