"""Codecs of the back cut, where the server is the sender.

Importing this package registers every output codec in ``OUTPUT_CODECS``.
"""

from lightsplit.codecs.output.base import OUTPUT_CODECS, OutputCodec
from lightsplit.codecs.output.linear import LinearOutput
from lightsplit.codecs.output.low_rank import LowRankGradient
from lightsplit.codecs.output.projection import ProjectedOutput
from lightsplit.codecs.output.tails import narrowed_tail, widened_tail
from lightsplit.codecs.output.whole import WholeOutput

__all__ = [
    "OUTPUT_CODECS",
    "LinearOutput",
    "LowRankGradient",
    "OutputCodec",
    "ProjectedOutput",
    "WholeOutput",
    "narrowed_tail",
    "widened_tail",
]
