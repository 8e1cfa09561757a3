"""Trained models in forms that other tools read.

    client    head + encoder as ONNX: inputs ─► code, for a device without PyTorch
    whole     the model as it predicts, codec included, as a torch.export program

Both come with their weights as safetensors. An ONNX file is run by onnxruntime once and
compared with PyTorch before it is kept.
"""

import io
import logging
import re
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from lightsplit.codecs import Code
from lightsplit.errors import ConfigError, RunError
from lightsplit.experiments import pieces
from lightsplit.experiments.config import Experiment, make_experiment, read_experiment
from lightsplit.experiments.cuts import make_cuts
from lightsplit.experiments.own_end import OwnEnd
from lightsplit.extras import require
from lightsplit.nesting import batch_size, map_tensors, repeated, tensors_in
from lightsplit.results import RunFolder, tensors
from lightsplit.results.atomic import write_bytes
from lightsplit.results.settings import merge
from lightsplit.runs import checkpoint_folder
from lightsplit.runtime import ClientSide, ServerSide
from lightsplit.splitting import companions_of, run_client
from lightsplit.splitting.flat import flattened

CLIENT_FILE = "client.safetensors"
_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")  # colours of a terminal
TOLERANCE = 1e-5  # of exported numbers against PyTorch's


class Trained(NamedTuple):
    """A trained model.

    Attributes:
        client: the client's side.
        server: the server's side; None in an owner's folder.
        inputs: of the task's example batch, two samples or more.
    """

    client: ClientSide
    server: ServerSide | None
    inputs: Any


class ClientPart(nn.Module):
    """Head and encoder: what a client computes before it sends."""

    def __init__(self, side: ClientSide) -> None:
        super().__init__()
        self.head = side.modules["head"]
        self.encoder = side.modules["encoder"]

    def forward(self, inputs: Any) -> Tensor:
        """Return the values of the code."""
        code: Code = self.encoder(self.head(inputs))
        return code.values


class WholeModel(nn.Module):
    """All parts in one, with the codecs between them."""

    def __init__(self, client: ClientSide, server: ServerSide) -> None:
        super().__init__()
        self.client = client.modules
        self.server = server.modules
        # A graph that takes the head's place knows nothing of companions.
        self._companions = partial(companions_of, client.modules["head"])

    def forward(self, inputs: Any) -> Any:
        """Return the model's output."""
        head = self.client["head"]
        shared = self._companions(inputs)

        def exchange(activation: Tensor) -> Tensor:
            lifted = self.server["decoder"](self.client["encoder"](activation))
            given = (lifted, shared) if shared else (lifted,)
            output: Tensor = self.server["backbone"](*given)
            if "encoder" in self.server:
                output = self.client["decoder"](self.server["encoder"](output))
            return output

        if "tail" in self.client:
            return run_client(head, self.client["tail"], exchange, inputs)
        return self.server["tail"](exchange(head(inputs)))


def restore(
    folder: RunFolder,
    *,
    client: int = 0,
    owner: Path | None = None,
    task: str | None = None,
) -> Trained:
    """Return the model of a run, or an owner's part of it; this needs no data.

    Args:
        folder: of a run in one process, of the server in a networked run, or of an
            owner in one.
        client: the client whose head to take, if heads are private.
        owner: folder of an owner, whose half joins the server's part.
        task: the task's name, if its file has moved.
    """
    tables = read_experiment(folder.experiment_file)
    if task is not None:
        tables = merge(tables, {"task": {"name": task}})
    experiment = make_experiment(tables)
    cuts = make_cuts(experiment, pieces.load_parts(experiment))
    side = pieces.make_client_side(experiment, cuts)
    inputs = _two_samples(experiment.make_task().example_inputs())
    kept = folder.path / CLIENT_FILE
    if kept.is_file():  # an owner's folder
        side.load(tensors.load(kept))
        return Trained(side, None, inputs)
    if owner is not None:
        client, file = _index_in(owner), owner / CLIENT_FILE
    newest, _ = checkpoint_folder.read(folder.checkpoint, cuts.contract.digest)
    if owner is None:
        file = newest / f"client-{_file_index(experiment, client)}.safetensors"
        if not file.is_file():
            raise RunError(
                f"{folder.path} was trained over the network and has the server's part "
                "alone; give --owner the folder of an owner ('join --state') too"
            )
    side.load(tensors.load(file))
    server = pieces.make_server(experiment, cuts).side
    server.load(tensors.load(newest / "server.safetensors"))
    server.normalisation.switch_to(client)
    return Trained(side, server, inputs)


def _index_in(owner: Path) -> int:
    """Return the client that an owner's folder belongs to, once its run is over."""
    text = RunFolder.open(owner).experiment_file.read_text(encoding="utf-8")
    figures = OwnEnd(owner, text).figures
    if figures is None or not (owner / CLIENT_FILE).is_file():
        raise RunError(f"{owner} has no trained part of a run that is over")
    return int(figures["index"])


def _two_samples(inputs: Any) -> Any:
    """Return at least two samples: torch.export takes a size of 1 for a constant."""
    if batch_size(inputs) > 1:
        return inputs
    return map_tensors(lambda one: torch.cat([one, one]), inputs)


def export_client(trained: Trained, out: Path) -> float:
    """Write ``client.onnx`` and its weights; return the largest difference in a code.

    Raises:
        RunError: the model cannot be exported, or its codes differ from PyTorch's.
    """
    inputs = trained.inputs
    if not isinstance(inputs, Tensor):
        raise ConfigError("only models whose input is one tensor can become ONNX")
    _check_objectives(trained.client)
    require("onnxscript", extra="export", purpose="ONNX")
    part = ClientPart(trained.client).eval()
    with _quiet("the head cannot become ONNX"):
        content = _to_onnx(flattened(part, inputs), inputs)
    difference = _difference(part, content, inputs)
    if difference > TOLERANCE:
        raise RunError(
            f"ONNX gives codes that differ from PyTorch's by {difference:.2g}, more "
            f"than {TOLERANCE:g}; nothing was written"
        )
    write_bytes(out / "client.onnx", content)
    tensors.save(out / "client.safetensors", part.state_dict(), is_secret=True)
    return difference


def export_whole(trained: Trained, out: Path) -> None:
    """Write ``model.pt2`` for ``torch.export.load``, and its weights.

    Raises:
        RunError: the model cannot be exported; its weights are written even so.
    """
    if trained.server is None:
        raise ConfigError(
            "an owner's folder has no backbone; give --part client, or the server's "
            "folder and --owner with this one"
        )
    _check_objectives(trained.client)
    # The tracer would take a tensor that is there twice for one input.
    inputs = map_tensors(torch.clone, trained.inputs)
    model = WholeModel(trained.client, trained.server).eval()
    weights = out / "model.safetensors"
    tensors.save(weights, model.state_dict(), is_secret=True)
    with (
        torch.no_grad(),
        _quiet(
            f"the weights are in {weights}, but no torch.export program can be made of "
            "this model"
        ),
    ):
        program = torch.export.export(
            flattened(model, inputs), (inputs,), dynamic_shapes=(_any_batch(inputs),)
        )
        content = io.BytesIO()
        torch.export.save(program, content)
        _check_program(model, program.module(), inputs)
    write_bytes(out / "model.pt2", content.getvalue(), is_secret=True)


def _check_objectives(side: ClientSide) -> None:
    """Refuse a client if more than head and encoder changes its codes."""
    changing = [
        objective.name
        for objective, weight in side.objectives
        if weight and objective.changes_what_is_sent
    ]
    if changing:
        raise ConfigError(
            f"{', '.join(changing)} changes what is sent, and an export would hold the "
            "model's own parts alone: it would be without that defence"
        )


def _file_index(experiment: Experiment, client: int) -> int:
    clients = experiment.owners.clients
    if not 0 <= client < clients:
        raise ConfigError(f"client must be between 0 and {clients - 1}, got {client}")
    return 0 if experiment.owners.heads == "shared" else client


def _any_batch(inputs: Any) -> Any:
    batch = torch.export.Dim("batch")
    return map_tensors(lambda _tensor: {0: batch}, inputs)


def _to_onnx(part: nn.Module, inputs: Tensor) -> bytes:
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "client.onnx"
        torch.onnx.export(
            part,
            (inputs,),
            file,
            dynamo=True,
            dynamic_shapes=(_any_batch(inputs),),
            input_names=["inputs"],
            output_names=["code"],
            external_data=False,
            verbose=False,
        )
        return file.read_bytes()


def _difference(part: ClientPart, content: bytes, inputs: Tensor) -> float:
    """Return the largest difference between both codes of random inputs."""
    runtime: Any = require("onnxruntime", extra="export", purpose="ONNX")
    session = runtime.InferenceSession(content, providers=["CPUExecutionProvider"])
    draw = torch.Generator().manual_seed(0)
    samples = torch.rand((3, *inputs.shape[1:]), generator=draw).to(inputs.dtype)
    (found,) = session.run(None, {"inputs": samples.numpy()})
    with torch.no_grad():
        expected = part(samples)
    return float((torch.from_numpy(found) - expected).abs().max())


def _check_program(model: nn.Module, program: nn.Module, inputs: Any) -> None:
    """Refuse a program whose outputs for another batch differ from the model's."""
    more = repeated(inputs, batch_size(inputs) + 1)
    with torch.no_grad():
        pairs = zip(tensors_in(program(more)), tensors_in(model(more)), strict=True)
        differences = [float((a - b).abs().max()) for a, b in pairs]
    if max(differences) > TOLERANCE:
        raise RunError(f"its outputs would differ by {max(differences):.2g}")


@contextmanager
def _quiet(what: str) -> Iterator[None]:
    """Turn whatever the exporter raises into one sentence, and silence its notes."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except Exception as error:  # the exporters have no common error
        reason = _ESCAPES.sub("", str(error)).strip() or type(error).__name__
        raise RunError(f"{what}: {reason.splitlines()[0]}") from error
    finally:
        logger.setLevel(level)
