"""What happens at a cut: encoders, decoders and the projections between them.

Importing this package enters every codec in ``CODECS``.
"""

from lightsplit.codecs.base import (
    CODECS,
    Code,
    Codec,
    Decoder,
    Encoder,
    Layout,
    TensorSpec,
    check_rows,
    reduced_size,
    size_of,
)
from lightsplit.codecs.learned_1x1 import Learned1x1
from lightsplit.codecs.lightsplit_f import LightSplitF
from lightsplit.codecs.lightsplit_l import LightSplitL
from lightsplit.codecs.output import OUTPUT_CODECS, OutputCodec
from lightsplit.codecs.projections import PROJECTIONS, Projection
from lightsplit.codecs.raw import Raw
from lightsplit.codecs.topk import TopK

__all__ = [
    "CODECS",
    "OUTPUT_CODECS",
    "PROJECTIONS",
    "Code",
    "Codec",
    "Decoder",
    "Encoder",
    "Layout",
    "Learned1x1",
    "LightSplitF",
    "LightSplitL",
    "OutputCodec",
    "Projection",
    "Raw",
    "TensorSpec",
    "TopK",
    "check_rows",
    "reduced_size",
    "size_of",
]
