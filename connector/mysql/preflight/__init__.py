"""Checks of the source before anything is read: settings, grants, cascades, filters that grew."""
