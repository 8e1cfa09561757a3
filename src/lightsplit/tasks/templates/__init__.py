"""Tasks to start from: ``lightsplit new`` copies one of these files."""
