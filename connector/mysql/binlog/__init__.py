"""The binary log as a stream of bytes: events cut out, decoded and gathered into transactions."""
