"""`thl apply`: the log into a target, and the commands that steer it.

applier            claim, handshake, stream: one run of `thl apply`
core               turns batches of messages into commits on the target
partition_buffers  messages that wait for their turn
commit_batch       the events of the next commit, counted
stop_condition     `--to-seqno`, `--to-event`, `--to-gtid`, `--to-time`, `--to-heartbeat`
skips              events and tables that an operator leaves out
rewind             `--from-seqno`: a part of the log is applied again
replay_check       checks that it can be
undo               `thl undo`: a target's data are taken back to an earlier event
invert             the inverse of an event
"""
