"""Steps with written messages: their contents, their bytes and their refusals."""

import pytest
import torch

from lightsplit import ByteMeter, through
from lightsplit.codecs import CODECS, OUTPUT_CODECS, Code
from lightsplit.codecs.output import narrowed_tail
from lightsplit.errors import CodecError, ConfigError, FormatError, ProtocolError
from lightsplit.formats import FORMATS, STEP_KINDS, WireFormats
from lightsplit.protocol import CodeMessage, OutputGradient
from lightsplit.runtime import Client, ClientSide, Server, ServerSide
from lightsplit.splitting import split

SHAPE, WIDTH, CLASSES, ROWS = (4, 6, 6), 12, 3, 8


class Written:
    """Both ends of a small model with formats and a codec at the back cut."""

    def __init__(self, model, formats="fp32", output="raw", *, size=None, **options):
        parts = split(model, head_until="1", tail_from="9")
        codec = CODECS.create("lightsplit-f", shape=SHAPE, ratio=4, projection="dct")
        self.output = OUTPUT_CODECS.create(
            output,
            shape=(WIDTH,),
            classes=CLASSES,
            **({} if size is None else {"size": size}),
        )
        tail = narrowed_tail(parts.tail, self.output)
        self.formats = WireFormats(formats, **options)
        self.meter = ByteMeter()
        self.messages = []
        sgd = torch.optim.SGD
        self.server = Server(
            ServerSide(parts.backbone, codec, sgd, output_codec=self.output),
            formats=self.formats,
        )
        self.side = ClientSide(parts.head, tail, codec, sgd, output_codec=self.output)
        self.client = Client(
            self.side, through(self.meter, self._send), formats=self.formats
        )

    def _send(self, request):
        reply = self.server.handle(request)
        self.messages += [request, reply]
        return reply

    def states(self):
        return [*self.side.state().values(), *self.server.side.state().values()]


@pytest.fixture
def make(make_network):
    return lambda *args, **options: Written(make_network(), *args, **options)


@pytest.mark.parametrize("output", OUTPUT_CODECS.names())
def test_fp32_at_full_width_is_the_run_without_formats(
    pair, make, make_batches, output
):
    plain = pair("lightsplit-f", optimizer=torch.optim.SGD, ratio=4, projection="dct")
    ours = make("fp32", output if output != "low-rank" else "raw")
    for inputs, labels in make_batches(4):
        assert plain.client.step(inputs, labels) == ours.client.step(inputs, labels)
    theirs = [*plain.side.state().values(), *plain.server.side.state().values()]
    assert all(map(torch.equal, ours.states(), theirs))
    inputs = make_batches(1)[0][0]
    assert torch.equal(plain.client.predict(inputs), ours.client.predict(inputs))


@pytest.mark.parametrize("name", FORMATS.names())
@pytest.mark.parametrize(
    ("output", "size"), [("raw", None), ("linear", 5), ("projection", 4)]
)
@pytest.mark.parametrize("rows", [1, 3, 8])
def test_counted_bytes_are_predicted_bytes(
    make, make_batches, name, output, size, rows
):
    ours = make(name, output, size=size)
    ours.server.side.modules.eval()
    ours.client.predict(make_batches(1, rows)[0][0])
    assert ours.meter.counts["evaluation"] == predicted(ours, "code", rows) + predicted(
        ours, "output", rows
    )
    if rows > 1:
        ours.client.step(*make_batches(1, rows)[0])
        for kind in STEP_KINDS:
            assert ours.meter.counts[kind] == predicted(ours, kind, rows), kind


def predicted(ours, kind, rows):
    return ours.server.wire.layout(kind, rows).code_bytes


@pytest.mark.parametrize("name", ["bf16", "int8", "int4"])
def test_training_with_written_messages_lowers_the_loss(make, make_batches, name):
    ours = make(name, "linear", size=4)
    inputs, labels = make_batches(1)[0]
    losses = [ours.client.step(inputs, labels) for _ in range(40)]
    assert losses[-1] < losses[0] - 0.01


def test_the_exact_factors_train_as_the_gradient_itself_does(make, make_batches):
    whole, factors = make("fp32", "raw"), make("fp32", "low-rank")
    for inputs, labels in make_batches(5):
        whole.client.step(inputs, labels)
        factors.client.step(inputs, labels)
    gradient = factors.messages[2]
    assert gradient.gradient.shape == (ROWS, CLASSES)
    assert gradient.side[0].shape == (CLASSES, WIDTH)
    for ours, theirs in zip(factors.states(), whole.states(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def test_the_server_computes_with_the_values_it_read(make, make_batches):
    ours = make("int4", "raw")
    seen = []
    ours.server.side.modules["decoder"].register_forward_pre_hook(
        lambda _module, args: seen.append(args[0].values.detach().clone())
    )
    ours.client.step(*make_batches(1)[0])
    message = ours.messages[0]
    read = ours.client.wire.read_code(message)
    assert message.code.values.dtype == torch.uint8
    assert torch.equal(seen[0], read.values)


def test_written_codes_of_another_layout_are_refused(make):
    server = make("int8").server
    with pytest.raises(
        CodecError, match=r"int8 \(8, 36\) with .*, got float32 \(8, 36\)$"
    ):
        server.handle(CodeMessage(0, 0, Code(torch.zeros(8, 36))))
    numbers = torch.zeros(8, 36, dtype=torch.int8)
    for scales in (torch.ones(7, dtype=torch.bfloat16), torch.ones(8)):
        with pytest.raises(
            CodecError, match=r"with bfloat16 \(8,\), got int8 \(8, 36\) with"
        ):
            server.handle(CodeMessage(0, 0, Code(numbers, (scales,))))


def test_a_written_gradient_of_another_layout_is_refused_and_the_step_stays_open(
    make, make_batches
):
    ours = make("output_gradient=int8")
    code = ours.side.encode(make_batches(1)[0][0])
    ours.server.handle(CodeMessage(0, 0, Code(code.values.detach())))
    with pytest.raises(ProtocolError, match=r"int8 \(8, 12\) with bfloat16 \(8,\)"):
        ours.server.handle(OutputGradient(0, 0, torch.zeros(8, 12)))
    huge = torch.full((8,), 3e38, dtype=torch.bfloat16)
    numbers = torch.ones(8, 12, dtype=torch.int8)
    with pytest.raises(ProtocolError, match="exceeds the range of float32"):
        ours.server.handle(OutputGradient(0, 0, numbers, (huge,)))
    good = torch.ones(8, dtype=torch.bfloat16)
    reply = ours.server.handle(OutputGradient(0, 0, numbers, (good,)))
    assert reply.gradient.isfinite().all()


def test_a_diverged_client_is_stopped_by_name(make, make_batches):
    ours = make("int8")
    inputs, labels = make_batches(1)[0]
    with pytest.raises(
        FormatError, match="int8 cannot write a number that is not finite"
    ):
        ours.client.step(inputs * torch.nan, labels)


def test_int4_needs_to_know_how_long_a_row_is(pair):
    ours = pair("lightsplit-f")
    with pytest.raises(ConfigError, match="int4 packs the rows of the output"):
        Client(ours.side, ours.server.handle, formats=WireFormats("int4"))
