"""Imported once by the process that the forks of ``hostile_forks`` share.

Building a small job loads everything that the package imports late.
"""

from lightsplit.experiments import build, from_settings

build(from_settings({"train_limit": 20, "clients": 2, "projection": "dct"}))
