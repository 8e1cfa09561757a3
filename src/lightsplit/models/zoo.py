"""The zoo: models that know the names of their cuts.

A cut name (``l1``, ``l2``) stands for a pair of dotted paths. In the paper the deeper
head holds a block that the shallower model does not have at all, so a zoo model is
built for a cut: the backbone is the same for both, and so are its parameter names.
"""

from dataclasses import dataclass

from torch import nn

from lightsplit.errors import ConfigError
from lightsplit.registry import Registry
from lightsplit.splitting import SplitModel, split

CUTS = ("l1", "l2")


@dataclass(frozen=True)
class ZooModel:
    """A whole model, the inputs it takes and the place where it is cut."""

    module: nn.Module
    input_shape: tuple[int, ...]
    head_until: str
    tail_from: str

    def split(self) -> SplitModel:
        """Cut the model; the parts hold its very parameters."""
        return split(self.module, head_until=self.head_until, tail_from=self.tail_from)


MODELS: Registry[ZooModel] = Registry("model")


def is_deep(cut: str) -> bool:
    """Say whether ``cut`` is the deeper of the two, or refuse it."""
    if cut not in CUTS:
        raise ConfigError(f"unknown cut {cut!r}; known: {', '.join(CUTS)}")
    return cut == "l2"
