"""What both ends of a loop must say alike: the cut, the codec, and the contract.

Both ends call ``agree`` with the same settings. The contract shows any difference when
they meet.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from lightsplit import seeding
from lightsplit.codecs import CODECS, OUTPUT_CODECS, Codec, refuse_joined
from lightsplit.errors import ConfigError
from lightsplit.formats import WireFormats
from lightsplit.nesting import batch_size as rows_of
from lightsplit.nesting import to_device
from lightsplit.protocol import Contract, Wire
from lightsplit.protocol.companions import ROWS, Companion
from lightsplit.runtime.crossing import Crossing
from lightsplit.runtime.magnitudes import NORM_LIMIT
from lightsplit.splitting import SplitModel, split
from lightsplit.splitting.loading import with_zero_weights


class Agreement(NamedTuple):
    """Everything that both ends hold alike.

    Attributes:
        parts: of the model.
        crossing: what crosses at the cuts.
        codec: of the front cut.
        output_codec: of the back cut; it sends the output whole.
        formats: how numbers travel.
        contract: of the run.
    """

    parts: SplitModel
    crossing: Crossing
    codec: Codec
    output_codec: Codec
    formats: WireFormats
    contract: Contract

    @property
    def wire(self) -> Wire:
        """How both ends write and read messages."""
        return Wire(self.codec, self.output_codec, self.formats)


class _Shapes(NamedTuple):
    activation: tuple[int, ...]
    output: tuple[int, ...]


def agree(  # noqa: PLR0913
    model: nn.Module,
    *,
    head_until: str,
    tail_from: str,
    example: Any = None,
    share: Sequence[str] = (),
    codec: str = "raw",
    codec_options: Mapping[str, Any] | None = None,
    wire: str = "fp32",
    batch_size: int | None = None,
    max_tokens: int | None = None,
    clients: int = 1,
    seed: int = 0,
    norm_limit: float = NORM_LIMIT,
) -> Agreement:
    """Return the agreement of a loop.

    Args:
        model: that is trained.
        head_until: the path of the module whose call ends the head.
        tail_from: the path of the module whose call starts the tail.
        example: a batch of inputs; its shapes and types matter, its numbers do not.
        share: names of inputs that the server gets with every batch. A mask named
            ``attention_mask`` also says which tokens are padding and not sent.
        codec: of the front cut. An activation (B, T, D) is coded token by token.
        codec_options: of the codec, such as ``{"ratio": 8}``.
        wire: number formats, such as ``bf16`` or ``code=int8,output=bf16``.
        batch_size: the largest batch; by default the example's.
        max_tokens: the longest sequence; by default the example's.
        clients: how many owners take part.
        seed: of the run.
        norm_limit: the largest number in a message.
    """
    if tail_from is None:
        raise ConfigError(
            "expected tail_from: in a loop of your own the loss is yours, and so is "
            "the tail"
        )
    if example is None:
        raise ConfigError(
            "expected example=…, a batch of inputs: both ends learn from it what "
            "crosses at the cuts; got none"
        )
    parts = split(
        model, head_until=head_until, tail_from=tail_from, example=example, share=share
    )
    activation, output, shared = _dry_run(parts, example)
    crossing = make_crossing(activation, output, shared, max_tokens=max_tokens)
    shapes = _row_shapes(crossing, activation, output)
    options = dict(codec_options or {})
    refuse_joined(codec, parts.sent)
    made = _make_codec(codec, shapes.activation, options, seed)
    if made.is_trained_before:
        raise ConfigError(
            f"no gradient comes back to codec {codec}, which is trained before a run, "
            "and a loop of your own sends gradients: choose another codec"
        )
    if crossing.has_tokens and not made.is_sample_wise:
        raise ConfigError(f"{codec} works on whole batches, and tokens come one by one")
    formats = WireFormats(wire, seed=seeding.derive(seed))
    contract = Contract(
        model=type(model).__name__,
        cut=f"{head_until}, {tail_from}",
        topology="u",
        heads="private",
        activation_shape=shapes.activation,
        output_shape=shapes.output,
        codec=codec,
        codec_options=options,
        code_size=made.code_size,
        fingerprint=made.fingerprint,
        seed=seed,
        clients=clients,
        batch_size=batch_size or len(activation),
        turn_steps=0,
        format=formats.text,
        rounding=formats.rounding_text,
        metrics=(),
        norm_limit=norm_limit,
        **crossing.terms(),  # type: ignore[arg-type]
    )
    whole = OUTPUT_CODECS.create("raw", shape=shapes.output)
    return Agreement(parts, crossing, made, whole, formats, contract)


def make_crossing(
    activation: Tensor,
    output: Tensor,
    shared: Mapping[str, Tensor],
    *,
    max_tokens: int | None = None,
) -> Crossing:
    """Return the crossing of a model whose example batch gives these tensors."""
    share = tuple(shared)
    dtypes = tuple(tensor.dtype for tensor in shared.values())
    sizes = {"batch": len(activation)}
    has_tokens = activation.ndim == 3
    if not has_tokens:
        named = [Companion.like(name, one, sizes) for name, one in shared.items()]
        return Crossing(share, dtypes, tuple(named))
    sizes["tokens"] = activation.shape[1]
    mask = Companion(ROWS, torch.uint8, ("batch", "tokens"))
    named = []
    for name, one in shared.items():
        if name == "attention_mask" and one.shape == activation.shape[:2]:
            mask = Companion(name, torch.uint8, ("batch", "tokens"))
        else:
            named.append(Companion.like(name, one, sizes))
    return Crossing(
        share,
        dtypes,
        (mask, *named),
        most_tokens=max_tokens or activation.shape[1],
        output_has_tokens=output.shape[:2] == activation.shape[:2] and output.ndim == 3,
    )


def _dry_run(
    parts: SplitModel, example: Any
) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    """Return activation, output and shared inputs of the example, for their shapes.

    A part whose weights were not loaded runs on zeros.
    """
    run = with_zero_weights(nn.ModuleList([parts.head, parts.backbone]))
    modes = {module: module.training for module in run.modules()}
    run.eval()
    weight = next(run.parameters(), None)
    batch = to_device(example, None if weight is None else weight.device)
    rows_of(batch)  # refuses an example without tensors
    head: Any
    head, backbone = run.children()
    try:
        with torch.no_grad():
            activation = head(batch)
            given = head.companions(batch) if hasattr(head, "companions") else ()
            names = head.recipe.plan.place.share if given else ()
            output = backbone(activation, given) if given else backbone(activation)
    finally:
        for module, mode in modes.items():
            module.training = mode
    return activation, output, dict(zip(names, given, strict=True))


def _row_shapes(crossing: Crossing, activation: Tensor, output: Tensor) -> _Shapes:
    front = 2 if crossing.has_tokens else 1
    back = 2 if crossing.output_has_tokens else 1
    return _Shapes(tuple(activation.shape[front:]), tuple(output.shape[back:]))


def _make_codec(
    name: str, shape: tuple[int, ...], options: Mapping[str, Any], seed: int
) -> Codec:
    drawn = {"seed": seeding.derive(seed, "projection"), **options}
    with seeding.scope(seed, "codec"):
        return CODECS.create(name, shape=shape, **drawn)
