"""Codecs: encoders, decoders and the projections between them.

Importing this package registers every codec in ``CODECS``.
"""

from lightsplit.codecs.base import (
    CODECS,
    Code,
    Codec,
    Coded,
    Decoder,
    Encoder,
    Layout,
    TensorSpec,
    check_rows,
    reduced_size,
    refuse_joined,
    size_of,
)
from lightsplit.codecs.bottlenet import BottleNet
from lightsplit.codecs.c3 import CircularConvolution
from lightsplit.codecs.few_bits import FewBits, RoundingEncoder
from lightsplit.codecs.franken import Franken
from lightsplit.codecs.fsq import FiniteScalarQuantisation
from lightsplit.codecs.learned_1x1 import Learned1x1
from lightsplit.codecs.lightsplit_b import LightSplitB
from lightsplit.codecs.lightsplit_f import LightSplitF
from lightsplit.codecs.lightsplit_l import LightSplitL
from lightsplit.codecs.mask_sparse import MaskSparse
from lightsplit.codecs.none import NoCode
from lightsplit.codecs.output import OUTPUT_CODECS, OutputCodec
from lightsplit.codecs.projections import PROJECTIONS, Projection
from lightsplit.codecs.randtopk import RandomTopK
from lightsplit.codecs.raw import Raw
from lightsplit.codecs.splitfc import SplitFC
from lightsplit.codecs.topk import TopK

__all__ = [
    "CODECS",
    "OUTPUT_CODECS",
    "PROJECTIONS",
    "BottleNet",
    "CircularConvolution",
    "Code",
    "Codec",
    "Coded",
    "Decoder",
    "Encoder",
    "FewBits",
    "FiniteScalarQuantisation",
    "Franken",
    "Layout",
    "Learned1x1",
    "LightSplitB",
    "LightSplitF",
    "LightSplitL",
    "MaskSparse",
    "NoCode",
    "OutputCodec",
    "Projection",
    "RandomTopK",
    "Raw",
    "RoundingEncoder",
    "SplitFC",
    "TensorSpec",
    "TopK",
    "check_rows",
    "reduced_size",
    "refuse_joined",
    "size_of",
]
