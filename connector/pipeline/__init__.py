"""The stages joined: one module for each of the two long-running commands, and what they are made of."""
