"""Fixed random maps with orthonormal columns, by name."""

from lightsplit.codecs.projections.base import PROJECTIONS, SCALES, Projection
from lightsplit.codecs.projections.dct import Dct
from lightsplit.codecs.projections.dense import Haar, Uniform

__all__ = ["PROJECTIONS", "SCALES", "Dct", "Haar", "Projection", "Uniform"]
