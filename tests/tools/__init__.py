"""Prepares a checkout for `make`: the environment, the compiled modules, the servers.

Runs before anything is installed, so it imports the standard library alone, and of the connector only the cache.

    prepare     the goals of `make` and their steps
    steps       runs steps side by side, each after those it needs
    progress    one line of progress
    wheels      collects pinned wheels in the cache and installs them
"""
