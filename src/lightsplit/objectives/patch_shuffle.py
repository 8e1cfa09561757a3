"""Patch shuffling: the tokens of each sample go to the server in a secret order.

    tokens (B, T, D) ──a permutation of T for each sample──► encoder ──► [server]
    outputs (B, T, …) ──the same permutations, undone──► tail

Blocks of a transformer treat all tokens alike, so the result stays the same, and the
server does not learn where a token was. It still learns the content of each token;
positions that the head has added to the tokens travel with them.

New permutations are drawn for each sample in each step, from the client's secret.
Before the run, the objective tests the network between the cuts: outputs must be
permuted as the tokens are (and are then put back), or not depend on their order at all.
It tests a copy with other weights, because learned positions may begin as zeros.

Not built: the published shuffles across the samples of a batch, and of spectra. Yao et
al.: Privacy-preserving split learning via patch shuffling over transformers, ICDM 2022.
"""

import copy

import torch
from torch import Tensor, nn

from lightsplit.codecs import Codec
from lightsplit.errors import ConfigError
from lightsplit.objectives.base import (
    OBJECTIVES,
    ClientView,
    Covered,
    Objective,
    ServerPart,
)
from lightsplit.part_facts import PartFacts

_TOLERANCE = 1e-3  # of the outputs' spread; sums in another order differ by far less
_CHANGE = 0.05  # of weights, in the copy that is tested


@OBJECTIVES.register("patch-shuffle")
class PatchShuffle(Objective):
    """Sends the tokens of each sample in an order that only the client knows.

    Args:
        codec: the codec of the front cut.
        server: what lies between the cuts.
    """

    name = "patch-shuffle"
    facts = PartFacts(
        source="Yao et al., ICDM 2022",
        assumes="a cut between tokens; a server that treats all tokens alike",
        client_cost="a permutation for each sample",
        attacker="a jigsaw that puts the tokens in order, not built here; what each "
        "token holds is not hidden",
        status="adapted",
    )

    def __init__(self, codec: Codec, server: ServerPart) -> None:
        super().__init__()
        if len(codec.shape) != 2 or codec.shape[0] < 2:
            raise ConfigError(
                "patch-shuffle permutes tokens: expected activations of (tokens, "
                f"values) with 2 tokens or more, got {codec.shape}"
            )
        if server.shares:
            raise ConfigError(
                "patch-shuffle cannot permute the inputs that the server gets as they "
                f"are: {', '.join(server.shares)}"
            )
        self.undoes_outputs = _permutes_outputs(server)

    def cover(self, activation: Tensor) -> Covered:
        """Return the tokens in a random order for each sample."""
        order = torch.rand(activation.shape[:2], device=activation.device).argsort(1)
        permuted = _in_order(activation, order)
        if not self.undoes_outputs:
            return Covered(permuted)
        places = order.argsort(1)
        return Covered(permuted, lambda output: _in_order(output, places))

    def forward(self, view: ClientView) -> Tensor:
        """Return 0: this objective only changes the order of the tokens."""
        return view.latent.new_zeros(())


def _in_order(tokens: Tensor, order: Tensor) -> Tensor:
    """Return (B, T, …) with the tokens of each sample in its ``order`` (B, T)."""
    return tokens[torch.arange(len(tokens), device=tokens.device)[:, None], order]


def _permutes_outputs(server: ServerPart) -> bool:
    """Return whether outputs are permuted as tokens are; False if they stay the same.

    Refuse a network that does neither. Where the server has the tail, results are not
    put back in order: they must stay the same.
    """
    module = _with_other_weights(server.module)
    tokens = torch.rand_like(server.example)
    order = torch.stack([torch.randperm(tokens.shape[1]) for _ in tokens])
    with torch.no_grad():
        outputs, shuffled = module(tokens), module(_in_order(tokens, order))
    limit = _TOLERANCE * float(outputs.std()) + 1e-6
    has_tokens = outputs.shape[:2] == tokens.shape[:2] and not server.has_tail
    if has_tokens and _largest(_in_order(outputs, order) - shuffled) <= limit:
        return True
    if _largest(outputs - shuffled) <= limit:
        return False
    raise ConfigError(
        "patch-shuffle needs a server that treats all tokens alike: here the output "
        "for tokens in another order is neither the same nor in that order"
    )


def _largest(differences: Tensor) -> float:
    return float(differences.abs().max())


def _with_other_weights(module: nn.Module) -> nn.Module:
    """Return a copy in evaluation mode whose weights are all a little different."""
    copied = copy.deepcopy(module).eval()
    with torch.no_grad():
        for parameter in copied.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=_CHANGE)
    return copied
