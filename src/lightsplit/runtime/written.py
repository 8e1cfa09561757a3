"""Which layout a received code has before it was written."""

from functools import lru_cache

from lightsplit.codecs import Codec, Layout
from lightsplit.errors import ConfigError
from lightsplit.formats import WireFormats


@lru_cache(maxsize=256)
def layout_of(codec: Codec | None, rows: int) -> Layout | None:
    """Return the layout of a code of so many rows; None where rows do not tell it."""
    if codec is None or not codec.is_sample_wise:
        return None
    return codec.layout(rows)


def check_formats(formats: WireFormats, **codecs: Codec | None) -> None:
    """Refuse int4 for a message whose layout its receiver cannot know.

    Args:
        formats: of the run.
        codecs: those that make the messages of these kinds.
    """
    for kind, codec in codecs.items():
        if formats.format(kind).name == "int4" and layout_of(codec, 1) is None:
            raise ConfigError(
                f"int4 packs the rows of the {kind}, and its receiver must know how "
                "long they are: it needs a codec there with a row for each sample"
            )
