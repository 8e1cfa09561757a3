"""What ``make bench`` runs: speed as ratios within one run."""
