"""A client's own state on its own disk; nobody but its owner may read it."""

from pathlib import Path

from lightsplit.errors import RunError
from lightsplit.results import atomic


class StateFolder:
    """Keeps a client's sides, or the parts of them that stay, by step.

    Args:
        path: of the folder; it is made when something is saved.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        atomic.remove_drafts(path)

    def save_side(self, step: int, blob: bytes) -> None:
        """Keep the side as it is before ``step``."""
        self._write(self._side_name(step), blob)

    def load_side(self, step: int) -> bytes:
        """Return the side as it was before ``step``."""
        try:
            return (self._path / self._side_name(step)).read_bytes()
        except FileNotFoundError as error:
            raise RunError(
                f"the server resumes from step {step}, but {self._path} does not hold "
                "the side of that step; give the folder of this client in this run"
            ) from error

    def newest_step(self, most: int | None = None) -> int | None:
        """Return the step of the newest side, at most ``most``; None without a side."""
        kept = (step for step in self._steps() if most is None or step <= most)
        return max(kept, default=None)

    def forget_sides_before(self, step: int) -> None:
        """Delete sides that the server will not ask for any more."""
        for old in self._steps():
            if old < step:
                (self._path / self._side_name(old)).unlink(missing_ok=True)

    def forget_sides_after(self, step: int) -> None:
        """Delete sides of steps that do not count."""
        for late in self._steps():
            if late > step:
                (self._path / self._side_name(late)).unlink(missing_ok=True)

    def _steps(self) -> list[int]:
        """Return the steps whose sides are kept."""
        kept = self._path.glob("side-*.safetensors")
        return [int(path.stem.removeprefix("side-")) for path in kept]

    def _write(self, name: str, blob: bytes) -> None:
        atomic.write_bytes(self._path / name, blob, is_secret=True)

    @staticmethod
    def _side_name(step: int) -> str:
        return f"side-{step:08d}.safetensors"
