"""Ray that does not come up; where it does: test_workers."""

from types import SimpleNamespace

import pytest

from lightsplit.errors import ConfigError
from lightsplit.sweeps import ray_workers


@pytest.mark.parametrize("kind", [Exception, RuntimeError, ConnectionError])
def test_whatever_ray_raises_when_it_starts_is_one_line(kind):
    def init(**_options):
        raise kind("The current node timed out\nand more")

    with pytest.raises(ConfigError) as caught:
        ray_workers._connect(SimpleNamespace(init=init), "local")
    assert (
        str(caught.value) == "cannot reach Ray at 'local': The current node timed out"
    )
