"""Prints the ten longest source files and fails if one is too long to read."""

import sys
from pathlib import Path

LIMIT = 400


def main() -> int:
    """Return the exit code: 1 if a file has more than LIMIT lines."""
    lengths = sorted(
        (
            (len(path.read_text().splitlines()), str(path))
            for folder in ("src", "tests", "benchmarks", "examples")
            for path in Path(folder).rglob("*.py")
            if "_pb" not in path.parts
        ),
        reverse=True,
    )
    print("longest files: " + ", ".join(f"{path} {n}" for n, path in lengths[:10]))
    too_long = [path for n, path in lengths if n > LIMIT]
    if too_long:
        print(f"more than {LIMIT} lines: {', '.join(too_long)}")
    return 1 if too_long else 0


if __name__ == "__main__":
    sys.exit(main())
