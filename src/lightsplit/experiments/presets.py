"""Wire settings by one name, and what is chosen where nothing is said.

    paper   fp32, only the two messages at the front cut compressed, as the paper has it
    half    the same in half the bytes
    lean    bf16, and the output shortened by a fixed projection, like the activation
    max     the same in int8

Each is a set of ordinary settings; one that is given besides takes its place.
"""

from collections.abc import Mapping
from typing import Any

from lightsplit.errors import ConfigError
from lightsplit.formats import FORMATS, ROUNDINGS, choice_text, parse_choices
from lightsplit.formats.wire_formats import DEFAULT_FORMAT, DEFAULT_ROUNDING
from lightsplit.registry import unknown_name

Settings = dict[str, Any]

PRESET_RATIO = 32
PRESETS: dict[str, Settings] = {
    "paper": {"format": "fp32", "output_codec": "raw", "hand_off": "fp32"},
    "half": {"format": "bf16", "output_codec": "raw", "hand_off": "bf16"},
    "lean": {"format": "bf16", "output_codec": "projection", "hand_off": "bf16"},
    "max": {"format": "int8", "output_codec": "projection", "hand_off": "int8"},
}
SHORTENING = ("linear", "projection")  # output codecs that send fewer values
_PLAIN: Settings = PRESETS["paper"]
_OUTPUT_SIZE = 48
_WIRE_SETTINGS = (*_PLAIN, "wire", "ratio", "rounding", "output_size")


def resolve_wire(data: Settings, classes: int) -> Settings:
    """Return every wire setting of ``data``, those left open filled in."""
    name = data.get("wire", "")
    if name and name not in PRESETS:
        raise ConfigError(unknown_name("wire preset", str(name), sorted(PRESETS)))
    chosen = {**_PLAIN, **PRESETS.get(name, {})}
    if data.get("topology") == "vanilla":  # no output crosses there in training
        chosen["output_codec"] = "raw"
    chosen |= {key: data[key] for key in chosen if data.get(key, "") != ""}
    size = data.get("output_size", 0)
    if size == 0 and chosen["output_codec"] in SHORTENING:
        size = default_output_size(classes)
    return {
        **chosen,
        "format": _whole(chosen["format"], FORMATS, DEFAULT_FORMAT),
        "rounding": _whole(data.get("rounding", ""), ROUNDINGS, DEFAULT_ROUNDING),
        "output_size": size,
    }


def default_ratio(data: Settings) -> int:
    """Return the ratio at the front cut where none is given."""
    if data.get("codec") == "raw":
        return 1
    return PRESET_RATIO if data.get("wire", "") else 8


def default_output_size(classes: int) -> int:
    """Return how many values keep what ``classes`` logits need, and some to spare."""
    return max(_OUTPUT_SIZE, -(-classes // 16) * 16)


def without_wire(data: Mapping[str, Any]) -> Settings:
    """Return ``data`` without what a preset decides: another one is to be chosen."""
    return {key: value for key, value in data.items() if key not in _WIRE_SETTINGS}


def _whole(text: Any, registry: Any, default: Mapping[str, str]) -> Any:
    """Return the full text of a choice; what is no text is refused elsewhere."""
    if not isinstance(text, str):
        return text
    return choice_text(parse_choices(text, registry, default))
