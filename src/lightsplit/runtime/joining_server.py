"""A server that joins the batches of all owners of a round into one.

    codes of all owners ─► decoder, each alone ─► one batch ─► backbone ─► a part each
    output gradients    ─► one backward pass, one update     ─► code gradients

The loss of a round is the mean over all its samples. An owner knows only the mean over
its own batch, so the server applies weights: it multiplies the output gradient of an
owner with n of the round's N samples by n / N, and the code gradient that the owner
gets back by N / n. Numbers on the wire therefore have the same scale as in turns, and
every owner trains as if its own mean loss were the whole loss.

The order of arrival changes nothing: owners are joined in the order of their numbers.
Normalisation layers and dropout see the joined batch as one batch.

An owner whose output gradient does not arrive counts with a zero gradient and no
weight.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from lightsplit import seeding
from lightsplit.codecs import Code
from lightsplit.errors import (
    ConfigError,
    FormatError,
    LightSplitError,
    ProtocolError,
)
from lightsplit.protocol import (
    CodeGradient,
    CodeMessage,
    OutputGradient,
    OutputMessage,
    Reply,
    Request,
    StepId,
)
from lightsplit.runtime.magnitudes import check_finite, check_norm, check_numbers
from lightsplit.runtime.ranks import Ranks
from lightsplit.runtime.server import Server, gradient_at


class _Part(NamedTuple):
    """One owner's part of the joined batch."""

    at: StepId
    values: Tensor
    output: Tensor


class JoiningServer(Server):
    """Takes all codes of a round at once, and then all output gradients.

    ``answer`` treats a message of a training step as a round of one owner, as in an
    audit. The arguments are those of Server.

    Attributes:
        ranks: processes that compute the joined batch together; None means this one
            alone.
        rows: samples of each owner in the joined batch.
        refused: the owners that the last backward pass left out, each with the reason.
    """

    ranks: Ranks | None = None
    rows: Mapping[int, int] = {}
    refused: Mapping[int, LightSplitError] = {}
    _parts: Mapping[int, _Part] = {}
    _round = 0
    _buffers: Sequence[Tensor] = ()

    def answer(self, request: Request) -> Reply:
        """Return the reply to a message outside training, or in a round of one."""
        if not request.is_training:
            return super().answer(request)
        self.settle()
        self.check(request)
        if isinstance(request, CodeMessage):
            return self.forward_round(request.step, [request])[request.client]
        if isinstance(request, OutputGradient):
            replies = self.backward_round([request])
            if not replies:
                raise self.refused[request.client]
            return replies[request.client]
        raise ProtocolError(
            f"expected a code or an output gradient, got a {request.kind}",
            code="out-of-order",
        )

    def check(self, request: Request) -> None:
        """Raise if the message of one owner must not enter a round."""
        if isinstance(request, CodeMessage):
            code = self.wire.read_code(request)
            check_numbers("code", code.values, self.norm_limit)
        elif isinstance(request, OutputGradient):
            check_numbers("output_gradient", self._gradient(request), self.norm_limit)

    def forward_round(
        self, number: int, requests: Sequence[CodeMessage]
    ) -> dict[int, OutputMessage]:
        """Return every owner's output for the codes of round ``number``."""
        self.settle()
        self.abandon_step()
        self._buffers, self._round = self._copied_buffers(), number
        ordered = sorted(requests, key=lambda request: request.client)
        leaves = [self._leaf(request) for request in ordered]
        with self._undone_if_refused(list(self._buffers)):
            self.side.set_training(True)
            with seeding.scope(self.seed, "round", number, "server"):
                outputs = self._outputs(leaves)
            check_finite("the output", [output.values for output in outputs])
            check_finite("running statistics", self.side.statistics)
            replies, parts = {}, {}
            for request, leaf, output in zip(ordered, leaves, outputs, strict=True):
                at = StepId(request.client, request.step)
                replies[request.client] = self.wire.write_output(at, output)
                parts[request.client] = _Part(at, leaf.values, output.values)
        self._parts = parts
        self.rows = {client: len(part.output) for client, part in parts.items()}
        return replies

    def backward_round(
        self, requests: Sequence[OutputGradient]
    ) -> dict[int, CodeGradient]:
        """Return every owner's code gradient; from then on one update is pending.

        While the gradient of the weights exceeds the limit, the owner with the largest
        part of it is left out; so is an owner whose code gradient cannot be written.
        ``refused`` has the owners that were left out. If nobody is left, the round is
        undone.
        """
        gradients = {one.client: self._gradient(one) for one in requests}
        refused: dict[int, LightSplitError] = {}
        self.refused = refused
        with self._undone_if_refused(list(self._buffers)):
            while True:
                replies, left_out = self._tried(gradients)
                if not left_out:
                    break
                refused |= left_out
                gradients = {c: g for c, g in gradients.items() if c not in refused}
        if not replies:
            self.undo_round()
            return {}
        number, self._parts = self._round, {}
        self._owed = lambda: self.recipe.apply(self.side, self.pace, number)
        return replies

    def undo_round(self) -> None:
        """Undo the current round, and its update if that is still pending."""
        self._owed, self._parts = None, {}
        self.side.zero_grad()
        self._put_back(list(self._buffers))

    def abandon_step(self) -> None:
        """Undo a round whose gradients will not arrive, with its running statistics."""
        if self._parts:
            self.undo_round()

    def _leaf(self, request: CodeMessage) -> Code:
        code = self.wire.read_code(request)
        return Code(code.values.detach().requires_grad_(), code.side)

    def _outputs(self, codes: Sequence[Code]) -> list[Code]:
        """Return the parts of the backbone's output for all codes together."""
        lifted = [self.side.lift(code) for code in codes]
        sizes = [len(one) for one in lifted]
        end = self.side if self.ranks is None else self.ranks
        output = end.compute(torch.cat(lifted))
        if not isinstance(output, Tensor) or len(output) != sum(sizes):
            raise ConfigError(
                "a joined batch needs a backbone with one output per sample: train "
                "this model in turns (--rounds turns)"
            )
        return [self.side.encode(part) for part in torch.split(output, sizes)]

    def _gradient(self, request: OutputGradient) -> Tensor:
        part = self._parts.get(request.client)
        if part is None or part.at.step != request.step:
            raise ProtocolError(
                f"step {request.step} of client {request.client} has sent no code"
            )
        return self.wire.read_output_gradient(request, part.output)

    def _weights(self, clients: Sequence[int]) -> dict[int, float]:
        """Return each owner's share of the samples whose gradients arrived."""
        samples = {client: len(self._parts[client].output) for client in clients}
        total = sum(samples.values())
        return {client: count / total for client, count in samples.items()}

    def _tried(
        self, gradients: Mapping[int, Tensor]
    ) -> tuple[dict[int, CodeGradient], dict[int, LightSplitError]]:
        """Run the backward pass for some owners; return replies and those left out."""
        if not gradients:
            return {}, {}
        weights = self._weights(list(gradients))
        self._differentiate(gradients, weights)
        try:
            norm = "gradient of the weights"
            check_norm(norm, self.side.gradients, self.norm_limit)
        except ProtocolError as error:
            if len(gradients) == 1:
                return {}, dict.fromkeys(gradients, error)
            return {}, {self._largest(gradients, weights): error}
        replies: dict[int, CodeGradient] = {}
        left_out: dict[int, LightSplitError] = {}
        for client in sorted(gradients):
            try:
                reply = self._reply(self._parts[client], 1 / weights[client])
                replies[client] = reply
            except (ProtocolError, FormatError) as error:
                left_out[client] = error
        return replies, left_out

    def _differentiate(
        self, gradients: Mapping[int, Tensor], weights: Mapping[int, float]
    ) -> None:
        """Run the backward pass once; the graph stays for another attempt."""
        self.side.zero_grad()
        for part in self._parts.values():
            part.values.grad = None
        clients = sorted(gradients)
        torch.autograd.backward(
            [self._parts[client].output for client in clients],
            [gradients[client] * weights[client] for client in clients],
            retain_graph=True,
        )

    def _largest(
        self, gradients: Mapping[int, Tensor], weights: Mapping[int, float]
    ) -> int:
        """Return the owner whose gradients alone would change the weights the most."""
        norms = {}
        for client, gradient in gradients.items():
            self._differentiate({client: gradient}, weights)
            norm = sum(float(g.norm()) ** 2 for g in self.side.gradients)
            norms[client] = norm if math.isfinite(norm) else math.inf
        return max(norms, key=lambda client: (norms[client], client))

    def _reply(self, part: _Part, scale: float) -> CodeGradient:
        gradient = gradient_at(part.values) * scale
        reply = self.wire.write_code_gradient(part.at, gradient, None)
        check_finite("the code gradient", [reply.gradient])
        return reply
