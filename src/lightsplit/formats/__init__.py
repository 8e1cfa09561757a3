"""Wire formats: how the numbers of a message are written, and how they are rounded.

Importing this package registers every format in ``FORMATS``.
"""

from lightsplit.formats.base import FORMATS, Format
from lightsplit.formats.choices import STEP_KINDS, choice_text, parse_choices
from lightsplit.formats.floats import BFloat16, Float16, Float32
from lightsplit.formats.integers import Int4, Int8
from lightsplit.formats.received import AsReceived
from lightsplit.formats.rounding import ROUNDINGS, Rounding, Stream
from lightsplit.formats.wire_formats import Stamp, WireFormats

__all__ = [
    "FORMATS",
    "ROUNDINGS",
    "STEP_KINDS",
    "AsReceived",
    "BFloat16",
    "Float16",
    "Float32",
    "Format",
    "Int4",
    "Int8",
    "Rounding",
    "Stamp",
    "Stream",
    "WireFormats",
    "choice_text",
    "parse_choices",
]
