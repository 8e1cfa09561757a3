"""The gradients of a shared head, for attackers who hold it before and after a step.

Everything is copied when the knowledge is gathered, because the victim keeps training.
The gradients are computed when an attack asks for them, in evaluation mode, one image
at a time, by the task's loss alone.
"""

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from lightsplit.attacks import Knowledge
from lightsplit.attacks.head_steps import HeadSteps
from lightsplit.audits.gathering import TrueClient, true_client
from lightsplit.audits.setup import TailNetwork, server_setup
from lightsplit.audits.victim import Victim
from lightsplit.codecs import Code
from lightsplit.errors import AuditError

IN_HAND = "the gradient at the cut is all that a server has, and it tells no more than "


class Rest(nn.Module):
    """The server's network and the tail: codes to logits."""

    def __init__(self, server: nn.Module, tail: nn.Module | None) -> None:
        super().__init__()
        self.server = server
        self.tail = tail

    def forward(self, codes: Tensor) -> Tensor:
        """Return the logits of codes."""
        output: Code = self.server(Code(codes))
        logits: Tensor = output.values if self.tail is None else self.tail(output)
        return logits


def let_accomplices_know(knowledge: Knowledge, victim: Victim) -> Knowledge:
    """Return the knowledge with the head's gradients, or why nobody has them."""
    reason = why_no_head_steps(victim)
    if reason is not None:
        reasons = {**knowledge.reasons, "head_steps": reason}
        return replace(knowledge, reasons=reasons)
    return replace(knowledge, head_steps=prepare_head_steps(victim))


def why_no_head_steps(victim: Victim) -> str | None:
    """Return why nobody has the gradients of the head; None if someone can."""
    split = victim.job.experiment.split
    if victim.job.contract.heads == "private":
        return f"heads are private: {IN_HAND}the code"
    if victim.job.contract.clients < 2:
        return f"no other client ever holds the head: {IN_HAND}the code"
    if split.gradients == "none" or victim.job.contract.release == "once":
        return "no gradient reaches the head of this run"
    if victim.side.codec.layout(1).side:
        return "codes with side information are not supported"
    return None


def prepare_head_steps(victim: Victim) -> Callable[[], HeadSteps]:
    """Return a function, with copies of all it needs, that computes the gradients."""
    job, side = victim.job, victim.side
    client = true_client(side, job.experiment)
    names = _trained(side.modules["head"], side.codec.encoder)
    job.trainer.server.side.normalisation.switch_to(victim.client)
    state = {
        name: kept.clone()
        for name, kept in job.trainer.server.side.modules.state_dict().items()
    }
    tail = copy.deepcopy(side.modules["tail"]) if "tail" in side.modules else None
    back = copy.deepcopy(side.modules["decoder"]) if "decoder" in side.modules else None

    def compute() -> HeadSteps:
        setup = server_setup(job.experiment, job.contract, 0)
        server = setup.server().to(setup.device)
        server.load_state_dict(state)
        end = None if tail is None else TailNetwork(back or _Values(), tail)
        rest = Rest(server, end).eval().requires_grad_(False)
        loss = job.experiment.make_task().loss
        return _computed(client, names, rest, victim, loss)

    return compute


def _computed(
    client: TrueClient,
    names: list[str],
    rest: Rest,
    victim: Victim,
    loss: Callable[[Any, Any], Tensor],
) -> HeadSteps:
    weights = [dict(client.named_parameters())[name] for name in names]
    if not weights:
        raise AuditError("the head has no weights, so it has no gradients to invert")
    last = _last_matrix(rest)
    for tensor in [*weights, *([] if last is None else [last])]:
        tensor.requires_grad_()
    _, told = victim.job.shares[victim.client].samples.batch(victim.rows)
    rows: list[list[Tensor]] = []
    for image, label in zip(
        torch.split(victim.targets.images, 1), torch.split(told, 1), strict=True
    ):
        code = client(image.to(weights[0]))
        asked = [code, *([] if last is None else [last]), *weights]
        value = loss(rest(code), label.to(weights[0].device))
        rows.append([g.detach() for g in torch.autograd.grad(value, asked)])
    for tensor in [*weights, *([] if last is None else [last])]:
        tensor.requires_grad_(False)
    code_gradients, *others = [torch.stack(each) for each in zip(*rows, strict=True)]
    tail = others.pop(0) if last is not None else None
    is_told = victim.job.contract.topology == "vanilla"
    return HeadSteps(
        gradients=dict(zip(names, others, strict=True)),
        at_the_code=code_gradients.squeeze(1),
        tail=tail,
        labels=told if is_told else None,
        rest=rest,
    )


def _trained(head: nn.Module, encoder: nn.Module) -> list[str]:
    """Return the names of the trained weights in a client's copy."""
    return [
        f"{part}.{name}"
        for part, module in (("head", head), ("encoder", encoder))
        for name, weight in module.named_parameters()
        if weight.requires_grad
    ]


def _last_matrix(rest: Rest) -> Tensor | None:
    """Return the last linear layer's weights of a client's tail, if it has any."""
    if rest.tail is None:
        return None
    layers = [module for module in rest.tail.modules() if isinstance(module, nn.Linear)]
    return layers[-1].weight if layers else None


class _Values(nn.Module):
    """The decoder of outputs that were sent whole."""

    def forward(self, output: Code) -> Tensor:
        """Return the output's values."""
        return output.values
