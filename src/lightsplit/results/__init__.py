"""What a run leaves on disk."""

from lightsplit.results import atomic, tensors
from lightsplit.results.finite import finite
from lightsplit.results.run_folder import RunFolder

__all__ = ["RunFolder", "atomic", "finite", "tensors"]
