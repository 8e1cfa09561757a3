"""The command line: one command per file."""

import os

# gRPC logs each failure that our own errors already report. It reads this variable when
# it is imported; set it to DEBUG or ERROR to see those logs.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
