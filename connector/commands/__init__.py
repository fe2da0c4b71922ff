"""The commands of `thl`, a file each; `connector.cli` imports one only when it is called."""
