import pytest

from lightsplit.codecs import CODECS, Layout, TensorSpec
from lightsplit.errors import CodecError, ConfigError
from lightsplit.protocol.frames.legal import ByRows, Enumerated

LAYOUT = CODECS.create("raw", shape=(5,)).layout


@pytest.mark.parametrize("kind", [Enumerated, ByRows])
def test_a_layout_is_legal_up_to_the_bound(kind):
    legal = kind(LAYOUT, 8)
    assert legal.sizes(LAYOUT(3), 8) == [3]
    assert legal.sizes(LAYOUT(3), 2) == []
    assert legal.sizes(Layout(TensorSpec((3, 6))), 8) == []
    assert legal.sizes(Layout(TensorSpec(())), 8) == []
    assert legal.first == LAYOUT(1)
    assert legal.most_bytes == 8 * 5 * 4


def test_a_codec_that_takes_no_batch_is_refused():
    def never(_size):
        raise CodecError("no")

    with pytest.raises(ConfigError, match="takes no batch of 1 to 4"):
        Enumerated(never, 4)
