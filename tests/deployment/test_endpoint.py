import pytest

from lightsplit.deployment.endpoint import Endpoint
from lightsplit.errors import ConfigError


@pytest.mark.parametrize(
    "address", ["", "localhost", "host:", "host:http", "host:65536", "host:-1", "[::1]"]
)
def test_an_address_has_a_host_and_a_port(address):
    with pytest.raises(ConfigError, match="expected host:port with a port up to 65535"):
        Endpoint(address, insecure=True).check()


@pytest.mark.parametrize("address", ["localhost:0", "127.0.0.1:65535", "[::1]:7443"])
def test_plain_text_stays_on_this_machine(address):
    Endpoint(address).check()


def test_plain_text_beyond_it_must_be_asked_for():
    with pytest.raises(ConfigError, match="--insecure"):
        Endpoint("10.0.0.1:7443").check()
    Endpoint("10.0.0.1:7443", insecure=True).check()
