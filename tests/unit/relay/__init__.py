"""Tests of `connector.relay`."""
