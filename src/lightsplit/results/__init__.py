"""What a run leaves on disk."""

from lightsplit.results import atomic, tensors
from lightsplit.results.finite import finite
from lightsplit.results.run_folder import RECORD_VERSION, RunFolder

__all__ = ["RECORD_VERSION", "RunFolder", "atomic", "finite", "tensors"]
