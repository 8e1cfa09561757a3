"""A backbone on several accelerators.

    {"encoder.layer.2": 0, "encoder.layer.3": 1, …}    a device for each module

accelerate moves the modules, and hooks of its own move what passes between them. What
comes in and goes out stays where codec and messages are.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from lightsplit import extras
from lightsplit.errors import ConfigError

Device = str | int | torch.device
DeviceMap = Mapping[str, Device]


def place(backbone: nn.Module, model: nn.Module, device_map: DeviceMap) -> None:
    """Put the modules of a backbone on devices, before an optimizer is made.

    Args:
        backbone: the server's part.
        model: that it was cut from.
        device_map: devices by the names of the model's modules; ``""`` names all. Those
            of the client's modules are left out.
    """
    accelerate: Any = extras.require(
        "accelerate", extra="devices", purpose="a device map"
    )
    own = _of_server(backbone, model, device_map)
    with _explained():
        chosen = {name: _canonical(device) for name, device in own.items()}
        _refuse_offloading(set(chosen.values()))
        accelerate.dispatch_model(backbone, chosen, force_hooks=True)


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except ConfigError:
        raise
    except (RuntimeError, AssertionError, ValueError) as error:  # torch, accelerate
        reason = " ".join(str(error).split())
        raise ConfigError(f"the device map cannot be followed: {reason}") from error


def _of_server(
    backbone: nn.Module, model: nn.Module, device_map: DeviceMap
) -> dict[str, Device]:
    """Return the entries of the server's modules; refuse a map that leaves one out."""
    known = dict(model.named_modules(remove_duplicate=False))
    unknown = [name for name in device_map if name not in known]
    if unknown:
        raise ConfigError(
            f"expected names of modules in the device map, got {unknown[0]!r}, which "
            "the model does not have"
        )
    states = list(backbone.state_dict())
    own = {
        name: device
        for name, device in device_map.items()
        if any(_is_below(state, name) for state in states)
    }
    missing = [s for s in states if not any(_is_below(s, name) for name in own)]
    if missing:
        raise ConfigError(
            "expected a device for every module of the server in the device map, got "
            f"none for {missing[0].rpartition('.')[0]!r}"
        )
    return own


def _is_below(state: str, module: str) -> bool:
    return not module or state.startswith(f"{module}.")


def _canonical(device: Device) -> str:
    """Return the name of a device, which must be there."""
    return "disk" if device == "disk" else str(torch.empty(0, device=device).device)


def _refuse_offloading(devices: set[str]) -> None:
    """Refuse what accelerate would load anew for each pass: it cannot be trained."""
    if "disk" in devices or ("cpu" in devices and len(devices) > 1):
        raise ConfigError(
            f"expected accelerators in the device map, got {', '.join(sorted(devices))}"
            ": weights that wait in memory or on disk are not trained"
        )
