"""Attacks on a run, their scores and pictures."""
