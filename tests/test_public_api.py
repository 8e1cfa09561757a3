import importlib
import pkgutil
import subprocess
import sys

import pytest

import lightsplit

LAZY = ("sklearn", "pooch", "PIL", "pydantic", "typer", "rich", "requests")
PACKAGES = [
    module.name
    for module in pkgutil.walk_packages(lightsplit.__path__, "lightsplit.")
    if module.ispkg and "._" not in module.name
]


@pytest.mark.parametrize("name", ["lightsplit", *PACKAGES])
def test_everything_that_a_package_offers_is_there(name):
    package = importlib.import_module(name)
    offered = getattr(package, "__all__", [])
    assert sorted(set(offered)) == sorted(offered)
    assert all(hasattr(package, one) for one in offered)


def test_every_public_name_has_a_description():
    for name in lightsplit.__all__:
        assert (getattr(lightsplit, name).__doc__ or "").strip(), name


@pytest.mark.slow
def test_importing_the_library_loads_only_what_it_needs_and_sets_nothing():
    code = (
        "import sys, torch; before = torch.get_rng_state(), torch.get_num_threads(); "
        "import lightsplit; after = torch.get_rng_state(), torch.get_num_threads(); "
        "assert torch.equal(before[0], after[0]) and before[1] == after[1]; "
        f"print([name for name in {LAZY} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
