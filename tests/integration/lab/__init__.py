"""What the laws of the network are tried with: runs, lines that break, processes."""
