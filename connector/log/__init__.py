"""The Transaction History Log as types and rules: pure code, no I/O, no vendor's library."""
