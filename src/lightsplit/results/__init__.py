"""What a run leaves on disk."""

from lightsplit.results import atomic, tensors
from lightsplit.results.run_folder import RunFolder

__all__ = ["RunFolder", "atomic", "tensors"]
