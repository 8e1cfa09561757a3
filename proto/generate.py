"""Writes the Python code of the schema, or with --check says whether it is stale.

Only messages are generated. The service needs no stub: frames are bytes on both sides
of gRPC, written and read by lightsplit/protocol/frames alone.
"""

import sys
import tempfile
from pathlib import Path

from grpc_tools import protoc

SCHEMA = Path(__file__).parent / "lightsplit.proto"
TARGET = SCHEMA.parents[1] / "src/lightsplit/protocol/_pb"
NAMES = ("lightsplit_pb2.py", "lightsplit_pb2.pyi")


def generate(folder: Path) -> None:
    """Write the code of the schema into ``folder``."""
    outputs = [f"--python_out={folder}", f"--pyi_out={folder}"]
    code = protoc.main(["protoc", f"-I{SCHEMA.parent}", *outputs, SCHEMA.name])
    if code:
        sys.exit(code)


def stale() -> list[str]:
    """Return the files that differ from what the schema gives now."""
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder))
        return [
            name
            for name in NAMES
            if not (TARGET / name).exists()
            or (TARGET / name).read_bytes() != (Path(folder) / name).read_bytes()
        ]


if __name__ == "__main__":
    if sys.argv[1:] != ["--check"]:
        generate(TARGET)
    elif names := stale():
        sys.exit(f"{', '.join(names)}: not what {SCHEMA.name} gives; run `make proto`")
