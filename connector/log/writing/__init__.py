"""The log as its producer writes it: control records, epochs and forks, going online, the position's progress."""
