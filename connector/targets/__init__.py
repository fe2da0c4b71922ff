"""Target databases: the contract, what all targets share, and a folder for each."""
