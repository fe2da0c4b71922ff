"""The formats in which events are printed."""
