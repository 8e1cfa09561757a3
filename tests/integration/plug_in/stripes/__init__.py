"""One part of each kind, in a package that LightSplit knows nothing about."""
