"""Tools that test the laws of the network: runs, breaking lines, processes."""
