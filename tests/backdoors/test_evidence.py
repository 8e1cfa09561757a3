import pytest
import torch
from torch import nn

from lightsplit.backdoors import (
    EvidenceCollector,
    check_collectable,
)
from lightsplit.backdoors.evidence import flat_gradient, flat_weights
from lightsplit.codecs import CODECS, Code
from lightsplit.errors import ConfigError
from lightsplit.formats import WireFormats
from lightsplit.protocol import (
    CodeGradient,
    CodeMessage,
    Contract,
    OutputGradient,
    OutputMessage,
    StepId,
    Wire,
)

RAW = CODECS.create("raw", shape=(3,), ratio=1)


class FakeServer:
    """Doubles codes and, at each gradient, sets that of the backbone."""

    def __init__(self):
        self.backbone = nn.Linear(3, 1, bias=False)

    def handle(self, request):
        if isinstance(request, CodeMessage):
            return OutputMessage(
                request.client, request.step, Code(2 * request.code.values)
            )
        self.backbone.weight.grad = torch.full((1, 3), float(request.step))
        return CodeGradient(request.client, request.step, request.gradient)


@pytest.fixture
def server():
    return FakeServer()


def collector(server, *needs, codec=RAW):
    return EvidenceCollector(needs, Wire(codec), server.backbone)


def code(client, rows, step=0, **options):
    return CodeMessage(client, step, Code(torch.tensor(rows)), **options)


def step(mod, server, client, rows):
    """Let a client do a whole step."""
    mod(code(client, rows), server.handle)
    mod(OutputGradient(client, 0, torch.zeros(len(rows), 3)), server.handle)


def test_means_are_over_all_samples_of_a_client(server):
    mod = collector(server, "code", "output")
    step(mod, server, 0, [[1.0, 0, 0], [3.0, 0, 0]])
    step(mod, server, 1, [[9.0, 9, 9]])
    step(mod, server, 0, [[5.0, 3, 0]])
    first, second = mod.window()
    assert (first.client, second.client) == (0, 1)
    assert first.code.tolist() == [3, 1, 0]
    assert first.output.tolist() == [6, 2, 0]
    assert second.code.tolist() == [9, 9, 9]


def test_the_gradient_is_the_mean_over_steps(server):
    mod = collector(server, "gradient")
    for number in (1, 3):
        mod(OutputGradient(0, number, torch.zeros(4, 3)), server.handle)
    (evidence,) = mod.window()
    assert evidence.gradient.tolist() == [2, 2, 2]
    assert evidence.code is None


def test_the_reply_is_the_servers_own(server):
    reply = collector(server, "code")(code(0, [[1.0, 2, 3]]), server.handle)
    assert reply.output.values.tolist() == [[2, 4, 6]]


def test_evaluation_leaves_no_evidence(server):
    mod = collector(server, "code", "output")
    mod(code(0, [[1.0, 2, 3]], is_training=False), server.handle)
    assert mod.window() == []


def test_a_step_that_is_broken_off_leaves_no_evidence(server):
    mod = collector(server, "code", "output")
    mod(code(0, [[1.0, 2, 3]]), server.handle)
    step(mod, server, 0, [[7.0, 7, 7]])
    assert mod.window()[0].code.tolist() == [7, 7, 7]


def test_in_the_vanilla_topology_one_message_is_a_whole_step(server):
    mod = collector(server, "code")
    sent = code(0, [[1.0, 2, 3]], labels=torch.tensor([1]))
    mod(sent, lambda _: CodeGradient(0, 0, torch.zeros(1, 3), 0.0))
    assert mod.window()[0].code.tolist() == [1, 2, 3]


def test_numbers_are_read_as_they_were_written(server):
    wire = Wire(RAW, formats=WireFormats("bf16"))
    mod = EvidenceCollector(("code",), wire, server.backbone)
    sent = wire.write_code(StepId(0, 0), Code(torch.tensor([[1.0, 2, 3]])))
    mod(sent, lambda _: OutputMessage(0, 0, sent.code))
    mod(OutputGradient(0, 0, torch.zeros(1, 3)), server.handle)
    assert mod.window()[0].code.tolist() == [1, 2, 3]


def test_evidence_that_no_detector_needs_is_not_kept(server):
    mod = collector(server)
    step(mod, server, 0, [[1.0, 2, 3]])
    assert mod.state() == {}


def test_a_cleared_collector_begins_anew(server):
    mod = collector(server, "code")
    step(mod, server, 0, [[1.0, 2, 3]])
    mod.clear()
    step(mod, server, 0, [[4.0, 4, 4]])
    assert mod.window()[0].code.tolist() == [4, 4, 4]


def test_a_collector_continues_from_its_state(server):
    used, fresh = collector(server, "code"), collector(server, "code")
    step(used, server, 0, [[1.0, 2, 3]])
    fresh.load(used.state())
    for mod in (used, fresh):
        step(mod, server, 0, [[3.0, 4, 5]])
    assert torch.equal(used.window()[0].code, fresh.window()[0].code)


def test_a_code_with_places_is_laid_out_as_an_activation(server):
    topk = CODECS.create("topk", shape=(8,), ratio=4)
    mod = collector(server, "code", codec=topk)
    kept = topk.encoder(torch.tensor([[0.0, 7, 0, 0, 0, 0, 5, 0]]))
    sent = topk.pack(kept)
    mod(CodeMessage(0, 0, sent), lambda _: OutputMessage(0, 0, sent))
    mod(OutputGradient(0, 0, torch.zeros(1, 2)), server.handle)
    assert mod.window()[0].code.tolist() == [0, 7, 0, 0, 0, 0, 5, 0]


def test_asking_for_evidence_that_was_not_collected_is_refused(server):
    mod = collector(server, "code")
    step(mod, server, 0, [[1.0, 2, 3]])
    with pytest.raises(ConfigError, match="no output was collected from client 0"):
        mod.window()[0].vector("output")


def test_a_frozen_backbone_holds_no_evidence():
    frozen = nn.Linear(3, 1).requires_grad_(False)
    for flat in (flat_gradient, flat_weights):
        with pytest.raises(ConfigError, match="frozen"):
            flat(frozen)


def test_flat_weights_do_not_change_with_the_module():
    module = nn.Linear(3, 1)
    before = flat_weights(module)
    nn.init.zeros_(module.weight)
    assert before.abs().sum() > 0


def test_outputs_cannot_be_judged_where_none_are_sent():
    terms = {"model": "m", "cut": "l1", "heads": "shared", "codec": "raw"}
    contract = Contract(
        topology="vanilla",
        activation_shape=(3,),
        output_shape=(3,),
        codec_options={},
        code_size=3,
        fingerprint="",
        seed=0,
        clients=2,
        batch_size=2,
        turn_steps=1,
        **terms,
    )
    with pytest.raises(ConfigError, match="vanilla"):
        check_collectable({"output"}, contract, Wire(RAW))
    check_collectable({"code"}, contract, Wire(RAW))
