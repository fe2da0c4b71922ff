"""SQLite as a target."""
