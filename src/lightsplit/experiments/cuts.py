"""What an experiment has at its two cuts: codecs, formats, and the contract for both.

Both ends make these from their settings alone, and compare the contracts.
"""

from dataclasses import replace
from typing import NamedTuple

import torch

from lightsplit import seeding
from lightsplit.codecs import CODECS, OUTPUT_CODECS, Codec, OutputCodec
from lightsplit.codecs.output import narrowed_tail
from lightsplit.errors import ConfigError
from lightsplit.experiments.config import FACTS, Experiment
from lightsplit.formats import WireFormats
from lightsplit.protocol import Contract
from lightsplit.splitting import SplitModel

Shape = tuple[int, ...]


class Cuts(NamedTuple):
    """The parts of a model and what lies between them.

    Attributes:
        parts: with a tail for what the output codec sends.
        codec: of the front cut.
        output_codec: of the back cut; None where the server has the tail.
        contract: for both.
    """

    parts: SplitModel
    codec: Codec
    output_codec: OutputCodec | None
    contract: Contract


def make_cuts(experiment: Experiment, parts: SplitModel) -> Cuts:
    """Return the codecs for the model's cuts and the contract for both."""
    activation, output = _cut_shapes(parts, FACTS[experiment.dataset][0])
    codec = make_codec(experiment, activation)
    output_codec = _make_output_codec(experiment, output)
    contract = _make_contract(experiment, (activation, output), codec, output_codec)
    if output_codec is not None and parts.tail is not None:
        tail = narrowed_tail(parts.tail, output_codec)
        parts = SplitModel(parts.head, parts.backbone, tail, parts.whole)
    return Cuts(parts, codec, output_codec, contract)


def plan_cuts(experiment: Experiment, parts: SplitModel) -> Cuts:
    """Return the same sizes and bytes without drawing a matrix, for plans."""
    if not experiment.projection:
        return make_cuts(experiment, parts)
    cuts = make_cuts(experiment.model_copy(update={"projection": "dct"}), parts)
    options = {**cuts.contract.codec_options, "projection": experiment.projection}
    return cuts._replace(contract=replace(cuts.contract, codec_options=options))


def make_codec(
    experiment: Experiment, shape: Shape, *, weights_of: str = "codec"
) -> Codec:
    """Return the codec; its learned weights, if any, are drawn for ``weights_of``."""
    try:
        with seeding.scope(experiment.seed, weights_of):
            return CODECS.create(
                experiment.codec,
                shape=shape,
                ratio=experiment.ratio,
                seed=seeding.derive(experiment.seed, "projection"),
                **experiment.codec_options(),
            )
    except RuntimeError as error:  # torch's word for too little memory
        raise ConfigError(f"cannot make {experiment.codec}: {error}") from error


def make_formats(experiment: Experiment) -> WireFormats:
    """Return how the numbers of each message are written."""
    return WireFormats(
        experiment.format, experiment.rounding, seed=seeding.derive(experiment.seed)
    )


def _cut_shapes(parts: SplitModel, input_shape: Shape) -> tuple[Shape, Shape]:
    """Return the shapes of an activation and of an output, without the batch."""
    parts.whole.eval()
    with torch.no_grad():
        activation = parts.head(torch.zeros(1, *input_shape))
        output = parts.backbone(activation)
    return tuple(activation.shape[1:]), tuple(output.shape[1:])


def _make_output_codec(experiment: Experiment, shape: Shape) -> OutputCodec | None:
    if experiment.topology == "vanilla":
        return None
    with seeding.scope(experiment.seed, "output codec"):
        return OUTPUT_CODECS.create(
            experiment.output_codec,
            shape=shape,
            size=experiment.output_size,
            seed=seeding.derive(experiment.seed, "output projection"),
            classes=FACTS[experiment.dataset][1],
        )


def _make_contract(
    experiment: Experiment,
    shapes: tuple[Shape, Shape],
    codec: Codec,
    output_codec: OutputCodec | None,
) -> Contract:
    return Contract(
        model=experiment.model,
        cut=experiment.cut,
        topology=experiment.topology,
        heads=experiment.heads,
        activation_shape=shapes[0],
        output_shape=shapes[1],
        codec=experiment.codec,
        codec_options={
            "seed": seeding.derive(experiment.seed, "projection"),
            **experiment.codec_options(),
        },
        code_size=codec.code_size,
        fingerprint=codec.fingerprint,
        seed=experiment.seed,
        clients=experiment.clients,
        batch_size=experiment.batch_size,
        turn_steps=experiment.turn_steps,
        format=experiment.format,
        rounding=experiment.rounding,
        output_codec=experiment.output_codec,
        output_size=0 if output_codec is None else output_codec.code_size,
        output_fingerprint="" if output_codec is None else output_codec.fingerprint,
        hand_off=experiment.hand_off,
    )
