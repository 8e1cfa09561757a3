"""The two cuts of an experiment: codecs, formats, and the contract for both.

Both ends make these from their settings alone and then compare the contracts.
"""

import copy
import math
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import nn

from lightsplit import seeding
from lightsplit.codecs import (
    CODECS,
    OUTPUT_CODECS,
    Codec,
    NoCode,
    OutputCodec,
    refuse_joined,
)
from lightsplit.codecs.output import narrowed_tail
from lightsplit.codecs.projections.base import run_projection
from lightsplit.errors import ConfigError, SplitError
from lightsplit.experiments.client_objectives import make_objectives
from lightsplit.experiments.config import Experiment
from lightsplit.experiments.local_tail import make_local_tail
from lightsplit.formats import WireFormats
from lightsplit.part_options import write_part
from lightsplit.protocol import Contract
from lightsplit.protocol.companions import Companion
from lightsplit.runtime import ClientSide, Secret, share_numbers
from lightsplit.runtime.side_bytes import most_side_bytes
from lightsplit.splitting import SplitModel, companions_of
from lightsplit.tasks import Task
from lightsplit.transports.homomorphic import cipher_bytes

Shape = tuple[int, ...]


class Cuts(NamedTuple):
    """The parts of a model and the codecs between them.

    Attributes:
        parts: the parts, with a tail that takes the output codec's values.
        codec: the codec of the front cut.
        output_codec: the codec of the back cut; None if the server has the tail, or
            if nothing is sent.
        contract: the contract for both cuts.
        local_tail: ends the client's own model before codes are sent once; else None.
        first_weights: the secret for a client's initial weights; None: the run's seed.
    """

    parts: SplitModel
    codec: Codec
    output_codec: OutputCodec | None
    contract: Contract
    local_tail: nn.Module | None = None
    first_weights: Secret | None = None


def make_cuts(
    experiment: Experiment, parts: SplitModel, first_weights: Secret | None = None
) -> Cuts:
    """Return the codecs for the model's cuts and the contract for both.

    A networked client draws the weights of a learned codec from ``first_weights`` and
    uses the encoder.
    """
    activation, output = _cut_shapes(parts, experiment.make_task().example_inputs())
    refuse_joined(experiment.codec.name, parts.sent)
    codec = make_codec(experiment, activation, first_weights=first_weights)
    output_codec = _make_output_codec(experiment, output)
    shapes, codecs = (activation, output), (codec, output_codec)
    drawn_from = first_weights or Secret(experiment.seed)
    local_tail = None
    if experiment.sends_once:
        local_tail = _make_tail_of_codes(experiment, parts, codec, drawn_from)
    contract = _make_contract(experiment, parts, shapes, codecs, local_tail)
    if isinstance(codec, NoCode):
        result = _result_shape(parts, experiment.make_task().example_inputs())
        tail = make_local_tail(activation, result, drawn_from, codec.hidden)
        alone = SplitModel(parts.head, parts.backbone, tail, parts.whole)
        return Cuts(alone, codec, None, contract, None, first_weights)
    if output_codec is not None and parts.tail is not None:
        tail = _narrowed(parts, parts.tail, output_codec)
        parts = SplitModel(parts.head, parts.backbone, tail, parts.whole)
    cuts = Cuts(parts, codec, output_codec, contract, local_tail, first_weights)
    if not contract.averages_side:
        return cuts
    numbers = _share_numbers(experiment, cuts)
    return cuts._replace(contract=replace(contract, share_numbers=numbers))


def _share_numbers(experiment: Experiment, cuts: Cuts) -> int:
    """Return how many numbers an owner's share of a sum has."""
    head, tail = copy.deepcopy((cuts.parts.head, cuts.parts.tail))
    side = ClientSide(
        head,
        tail if experiment.split.topology == "u" else None,
        cuts.codec,
        output_codec=cuts.output_codec,
        objectives=make_objectives(experiment, cuts),
        freeze=experiment.split.freeze_client,
    )
    return share_numbers(side, cuts.contract)


def _make_tail_of_codes(
    experiment: Experiment, parts: SplitModel, codec: Codec, drawn_from: Secret
) -> nn.Module:
    """Return the layer that trains with the head before codes are sent once."""
    if not codec.is_sample_wise:
        raise ConfigError(
            f"codec {codec.name!r} makes one code of a whole batch, and where codes "
            "are sent once each sample needs its own: choose another codec"
        )
    inputs = experiment.make_task().example_inputs()
    with torch.no_grad():
        activation, output = parts.example_of(inputs)
        rows = codec.rows(codec.encoder.eval()(activation)).flatten(1)
        if parts.tail is not None:
            _check_tail_alone(parts.tail, output)
    codec.encoder.train()
    result = _result_shape(parts, inputs)
    return make_local_tail(tuple(rows.shape[1:]), result, drawn_from)


def _check_tail_alone(tail: nn.Module, output: torch.Tensor) -> None:
    try:
        tail.eval()(output)
    except SplitError as error:
        raise ConfigError(
            "where codes are sent once, the tail must need the server's output alone: "
            f"{error}"
        ) from error


def _narrowed(parts: SplitModel, tail: nn.Module, codec: OutputCodec) -> nn.Module:
    """Return the tail for the output codec; refuse one that shortens joined outputs."""
    if len(parts.sent_back) > 1 and codec.matrix() is not None:
        raise ConfigError(
            f"output codec {codec.name} shortens one output, and "
            f"{len(parts.sent_back)} tensors cross the back cut: "
            f"{', '.join(parts.sent_back)}; choose output codec raw or low-rank"
        )
    return narrowed_tail(tail, codec)


def plan_cuts(experiment: Experiment, parts: SplitModel) -> Cuts:
    """Return cuts of the same sizes and bytes without drawing a matrix, for plans."""
    drawn = experiment.codec.options.get("projection")
    if drawn is None:
        return make_cuts(experiment, parts)
    cuts = make_cuts(experiment.changed(codec={"projection": "dct"}), parts)
    options = {**cuts.contract.codec_options, "projection": drawn}
    return cuts._replace(contract=replace(cuts.contract, codec_options=options))


def make_codec(
    experiment: Experiment,
    shape: Shape,
    *,
    weights_of: str = "codec",
    first_weights: Secret | None = None,
) -> Codec:
    """Return the codec; its learned weights, if any, are drawn for ``weights_of``."""
    try:
        with (first_weights or Secret(experiment.seed)).scope(weights_of):
            return CODECS.create(
                experiment.codec.name,
                shape=shape,
                seed=run_projection(experiment.seed),
                **experiment.codec.options,
            )
    except RuntimeError as error:  # torch raises it when memory is short
        raise ConfigError(f"cannot make {experiment.codec.name}: {error}") from error


def make_formats(experiment: Experiment) -> WireFormats:
    """Return the number format of each message."""
    wire, seed = experiment.wire, seeding.derive(experiment.seed)
    return WireFormats(wire.format, wire.rounding or "", seed=seed)


def _cut_shapes(parts: SplitModel, inputs: Any) -> tuple[Shape, Shape]:
    """Return the shapes of an activation and of an output, without the batch."""
    parts.whole.eval()
    with torch.no_grad():
        activation, output = parts.example_of(inputs)
    return tuple(activation.shape[1:]), tuple(output.shape[1:])


def _result_shape(parts: SplitModel, inputs: Any) -> Shape:
    """Return the shape of the model's result for one sample."""
    with torch.no_grad():
        result = parts.whole.eval()(inputs)
    return tuple(result.shape[1:])


def _make_output_codec(experiment: Experiment, shape: Shape) -> OutputCodec | None:
    if experiment.split.topology == "vanilla":
        return None
    with seeding.scope(experiment.seed, "output codec"):
        return OUTPUT_CODECS.create(
            experiment.output_codec.name,
            shape=shape,
            seed=seeding.derive(experiment.seed, "output projection"),
            classes=experiment.make_task().classes or 0,
            **experiment.output_codec.options,
        )


def _make_contract(
    experiment: Experiment,
    parts: SplitModel,
    shapes: tuple[Shape, Shape],
    codecs: tuple[Codec, OutputCodec | None],
    local_tail: nn.Module | None,
) -> Contract:
    task, steps = experiment.make_task(), experiment.training.turn_steps
    codec, output_codec = codecs
    return Contract(
        model=task.model_name or type(parts.whole).__name__,
        cut=task.cut or f"{task.head_until}, {task.tail_from}",
        topology=experiment.split.topology,
        heads=experiment.owners.heads,
        activation_shape=shapes[0],
        output_shape=shapes[1],
        codec=experiment.codec.name,
        codec_options={
            "seed": run_projection(experiment.seed),
            **{
                k: v
                for k, v in experiment.codec.options.items()
                if k not in codec.files
            },
        },
        code_size=codec.code_size,
        fingerprint=codec.fingerprint,
        seed=experiment.seed,
        clients=experiment.owners.clients,
        batch_size=experiment.training.batch_size,
        turn_steps=0 if steps == "epoch" else steps,
        format=experiment.wire.format,
        rounding=experiment.wire.rounding or "",
        output_codec=_output_codec_text(experiment),
        output_size=0 if output_codec is None else output_codec.code_size,
        output_fingerprint="" if output_codec is None else output_codec.fingerprint,
        hand_off=experiment.wire.hand_off,
        statistics=experiment.statistics,
        accumulate=experiment.training.accumulate,
        hand_off_optimizer=experiment.wire.hand_off_optimizer,
        metrics=tuple(task.metrics),
        gradients=experiment.split.gradients,
        release=experiment.split.release or "every-step",
        norm_limit=experiment.training.norm_limit,
        side_bytes=_side_bytes(experiment, parts, codecs, local_tail),
        form={} if task.form is None else task.form.terms(),
        companions=_companions(parts, task),
        cipher_bytes=_cipher_bytes(experiment, codec, shapes[1]),
        rounds=experiment.owners.rounds,
    )


def _cipher_bytes(experiment: Experiment, codec: Codec, output: Shape) -> int:
    """Return the byte limit of an encrypted code or output; 0 if none is sent."""
    if not experiment.server.encrypted:
        return 0
    classes = experiment.make_task().classes or 0
    return cipher_bytes(codec.code_size, max(math.prod(output), classes))


def _companions(parts: SplitModel, task: Task) -> tuple[str, ...]:
    """Return the terms for the inputs that the server gets as they are."""
    if not task.share:
        return ()
    given = companions_of(parts.head, task.example_inputs())
    return tuple(
        str(Companion.like(name, tensor, {"batch": len(tensor)}))
        for name, tensor in zip(task.share, given, strict=True)
    )


def _side_bytes(
    experiment: Experiment,
    parts: SplitModel,
    codecs: tuple[Codec, OutputCodec | None],
    local_tail: nn.Module | None,
) -> int:
    """Return the bound of a sealed side."""
    codec, output_codec = codecs
    tail = parts.tail if experiment.split.topology == "u" else None
    decoder = None if output_codec is None else output_codec.decoder
    return most_side_bytes(parts.head, tail, codec.encoder, decoder, local_tail)


def _output_codec_text(experiment: Experiment) -> str:
    """Return the output codec with its options; its size is a term of its own."""
    options = experiment.output_codec.options
    own = {name: value for name, value in options.items() if name != "size"}
    return write_part(experiment.output_codec.name, own)
