"""The command line: one command per file."""

import os

# gRPC has its own word on everything that our errors say. It looks for this when it is
# imported; who wants to hear it sets it to DEBUG or ERROR.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
