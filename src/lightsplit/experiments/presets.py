"""Presets of wire settings, and the defaults where the user says nothing.

    paper   fp32, only the two messages at the front cut compressed, as the paper has it
    half    the same in half the bytes
    lean    bf16, and the output shortened by a fixed projection, like the activation;
            heads travel as changes in int8, without the optimizer's state
    max     the same, and the messages in int8

A preset is a set of ordinary settings; a setting given by the user takes precedence.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from lightsplit.codecs import OUTPUT_CODECS
from lightsplit.errors import ConfigError
from lightsplit.experiments import parts
from lightsplit.experiments.tables import Part, WireTable
from lightsplit.formats import FORMATS, ROUNDINGS, choice_text, parse_choices
from lightsplit.formats.wire_formats import DEFAULT_FORMAT, DEFAULT_ROUNDING
from lightsplit.registry import unknown_name
from lightsplit.tasks import Task

if TYPE_CHECKING:
    from lightsplit.experiments.config import Experiment

Options = dict[str, Any]

PRESET_RATIO = 32
_WHOLE = {"output_codec": "raw", "hand_off_optimizer": "travels"}
_SHORT = {
    "output_codec": "projection",
    "hand_off": "int8",
    "hand_off_optimizer": "stays",
}
PRESETS: dict[str, dict[str, str]] = {
    "paper": {**_WHOLE, "format": "fp32", "hand_off": "fp32"},
    "half": {**_WHOLE, "format": "bf16", "hand_off": "bf16"},
    "lean": {**_SHORT, "format": "bf16"},
    "max": {**_SHORT, "format": "int8"},
}
_HAND_OFF = ("hand_off", "hand_off_optimizer")
_OUTPUT_SIZE = 48


class Chosen(NamedTuple):
    """The wire settings that result from a preset and the given settings."""

    wire: WireTable
    output_codec: Part
    codec_options: Options


def resolve_wire(
    experiment: "Experiment", given: Mapping[str, Any], task: Task
) -> Chosen:
    """Return every wire setting; those not given are filled in."""
    wire = experiment.wire
    if wire.preset is not None and wire.preset not in PRESETS:
        raise ConfigError(unknown_name("wire preset", wire.preset, sorted(PRESETS)))
    preset = PRESETS[wire.preset or "paper"]
    own = given.get("wire", {})
    texts = {
        "format": _whole(own.get("format", preset["format"]), FORMATS, DEFAULT_FORMAT),
        "rounding": _whole(wire.rounding or "", ROUNDINGS, DEFAULT_ROUNDING),
        **{name: own.get(name, preset[name]) for name in _HAND_OFF},
    }
    is_vanilla = experiment.split.topology == "vanilla"  # no output crosses there
    usual = "raw" if is_vanilla else preset["output_codec"]
    name = given.get("output_codec", {}).get("name", usual)
    return Chosen(
        wire.model_copy(update=texts),
        _output_codec(name, experiment.output_codec.options, task),
        _preset_options(wire, experiment.codec.name),
    )


def usual_wire(experiment: "Experiment", task: Task) -> Chosen:
    """Return the wire settings of the experiment's preset alone."""
    bare = replace(
        experiment,
        wire=WireTable.model_validate({"preset": experiment.wire.preset}),
        output_codec=Part(name=experiment.output_codec.name),
    )
    return resolve_wire(bare, {}, task)


def default_output_size(classes: int | None) -> int:
    """Return an output size with room for ``classes`` logits and some to spare."""
    return max(_OUTPUT_SIZE, -(-(classes or 0) // 16) * 16)


def without_wire(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tables without a preset's settings, so that another can be chosen."""
    kept = {k: v for k, v in tables.items() if k not in ("wire", "output_codec")}
    if "codec" in kept:
        kept["codec"] = {k: v for k, v in kept["codec"].items() if k != "ratio"}
    return kept


def _preset_options(wire: WireTable, codec: str) -> Options:
    """Return the preset's options for the codec: a ratio, if the codec has one."""
    usual = parts.defaults("codec", codec).get("ratio", 1)
    return {"ratio": float(PRESET_RATIO)} if wire.preset and usual > 1 else {}


def _output_codec(name: str, options: Options, task: Task) -> Part:
    codec: Any = OUTPUT_CODECS.get(name)
    shortens = getattr(codec, "shortens", False)
    if options.get("size") is not None and not shortens:
        raise ConfigError(
            f"output codec {name!r} sends the whole output: it takes no size, "
            f"got {options['size']}"
        )
    usual = {"size": default_output_size(task.classes)} if shortens else {}
    checked = parts.checked("output_codec", name, {**usual, **options})
    codec.check_options(checked)
    return Part(name=name, **checked)


def _whole(text: str, registry: Any, default: Mapping[str, str]) -> str:
    """Return the unabbreviated text of a choice."""
    return choice_text(parse_choices(text, registry, default))
