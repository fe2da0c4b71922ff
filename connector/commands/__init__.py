"""The commands of `thl`, one file each; `connector.cli` imports a command only when it is called.

- `grammar/`: what commands share: their class, options, bounds, and the reference page.
- `init`: writes a commented configuration.
- `check`: checks source, Kafka, target, grants and Java.
- `config`: prints the configuration, or its reference.
- `produce`: reads the binary log into Kafka.
- `apply`: applies the log to the target.
- `offline`: ends an applier or a producer.
- `wait`: waits for an event.
- `load`: loads tables while replication goes on.
- `heartbeat`: writes a heartbeat on the source.
- `undo`: takes a target back to an earlier event.
- `status`: prints how far producer and applier are.
- `verify`: compares source and target.
- `support_bundle`: writes an archive for who helps.
- `list`: prints events of the log.
- `tail`: prints events as the log grows.
- `info`: prints what the log contains.
- `index`: prints the offsets of the log's events.
- `trace`: prints the times of one event.
- `trapped`: lists events that the source does not have.
- `acls`: prints the access rules of the topics.
- `binlog`: prints binary log files.
- `archive`: copies the binary log to a folder.
- `records`: shows, checks and rebuilds the record store of a producer.
- `purge`: deletes events of a relay.
- `sandbox`: starts and ends disposable servers.
- `demo`: shows replication on real servers.
"""
