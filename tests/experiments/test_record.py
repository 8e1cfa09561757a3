"""The figures of record.json, compared with the shapes at the cuts."""

import json
import math
from itertools import pairwise
from pathlib import Path

import pytest

from lightsplit.codecs import CODECS
from lightsplit.protocol.messages import LOSS_BYTES
from lightsplit.results import tensors

pytestmark = pytest.mark.slow

D, U, CLASSES = 16 * 8 * 8, 64, 10
FIELDS = {
    "test_accuracy": float,
    "best_test_accuracy": float,
    "ratio": float,
    "step_ratio": float,
    "code_size": int,
    "activation_size": int,
    "steps": int,
    "samples": int,
    "seconds": float,
    "seed": int,
    "bytes": dict,
    "parameters": dict,
    "client_cost": dict,
    "versions": dict,
    "experiment": dict,
    "labels": dict,
    "record_version": int,
}


def test_the_record_has_the_documented_fields(finished):
    record = finished(seed=4).record
    for name, kind in FIELDS.items():
        assert isinstance(record[name], kind), name
    assert record["seed"] == 4
    assert {"lightsplit", "torch", "numpy", "python"} <= record["versions"].keys()
    assert 0 <= record["test_accuracy"] <= record["best_test_accuracy"] <= 1


def test_the_returned_record_equals_the_file_in_the_folder(finished):
    done = finished()
    assert done.folder.read_record() == done.record
    assert json.loads(done.folder.record_file.read_text()) == done.record


@pytest.mark.parametrize("topology", ["u", "vanilla"])
def test_parameters_are_those_of_the_model_and_its_codec(finished, topology):
    done = finished(codec="learned-1x1", topology=topology)
    counts, codec = done.record["parameters"], done.job.codec
    parts = {
        **{
            name: getattr(done.job.parts, name) for name in ("head", "backbone", "tail")
        },
        "encoder": codec.encoder,
        "decoder": codec.decoder,
    }
    assert counts == {
        "output_encoder": 0,
        **{n: sum(p.numel() for p in part.parameters()) for n, part in parts.items()},
    }


def code_bytes(codec, k, rows):
    """The bytes of the code of a batch, by the formula of each codec."""
    if codec in ("lightsplit-b", "fsq"):
        return 2 * rows
    if codec in ("topk", "randtopk"):
        return 4 * k * rows + math.ceil(rows * math.log2(math.comb(D, k)) / 8)
    if codec == "mask-sparse":
        return rows * (2 * D + 32 * (D // 100)) // 8
    if codec in ("c3", "splitfc"):
        count = 4 if codec == "c3" else 0  # the number of samples
        return gradient_bytes(codec, k, rows) + count
    return 4 * k * rows


def gradient_bytes(codec, k, rows):
    if codec == "splitfc":
        return rows * D // 2 // 8
    return 4 * D * math.ceil(rows / 8) if codec == "c3" else 4 * k * rows


@pytest.mark.parametrize(
    "codec", [n for n in CODECS.names() if n not in ("none", "franken")]
)
def test_u_shaped_bytes_follow_from_the_shapes(finished, codec):
    record = finished(codec=codec).record
    sent, samples, k = record["bytes"], record["samples"], record["code_size"]
    steps = record["steps"]
    assert sent["code"] == steps * code_bytes(codec, k, 10)
    assert sent["code_gradient"] == steps * gradient_bytes(codec, k, 10)
    assert sent["output"] == sent["output_gradient"] == samples * 4 * U
    assert sent["labels"] == 0
    assert sent["evaluation"] == 2 * (code_bytes(codec, k, 20) + 20 * 4 * U)
    assert sent["total"] == sum(sent.values()) - sent["total"]


def test_vanilla_bytes_follow_from_the_shapes(finished):
    record = finished(topology="vanilla").record
    sent, samples, k = record["bytes"], record["samples"], record["code_size"]
    assert sent["code"] == samples * 4 * k
    assert sent["labels"] == samples * 8
    assert sent["code_gradient"] == samples * 4 * k + record["steps"] * LOSS_BYTES
    assert sent["output"] == sent["output_gradient"] == 0
    assert sent["evaluation"] == 2 * 20 * 4 * (k + CLASSES)


def test_set_up_is_one_contract_for_each_client(finished):
    done = finished()
    assert done.record["bytes"]["setup"] == 3 * len(
        done.job.contract.to_json().encode()
    )


@pytest.mark.parametrize("topology", ["u", "vanilla"])
def test_raw_has_a_step_ratio_of_exactly_one(finished, topology):
    record = finished(codec="raw", topology=topology).record
    assert record["step_ratio"] == record["ratio"] == 1.0


@pytest.mark.parametrize("ratio", [1, 8, 32, 7.5])
def test_the_step_ratio_counts_all_four_messages(finished, ratio):
    record = finished(ratio=ratio).record
    k = int(D // ratio)
    assert record["code_size"] == k
    assert record["ratio"] == D / k
    assert record["step_ratio"] == pytest.approx((D + U) / (k + U), rel=1e-12)


@pytest.mark.parametrize(
    ("clients", "turn_steps"), [(2, 1), (3, 1), (3, 2), (3, "epoch")]
)
def test_a_hand_off_sends_the_side_up_and_down_at_each_change(
    finished, clients, turn_steps
):
    done = finished(clients=clients, turn_steps=turn_steps, train_limit=67)
    order = [turn.client for turn in done.job.trainer.schedule.turns()]
    changes = sum(a != b for a, b in pairwise(order))
    state = len(tensors.to_bytes(done.job.trainer.clients[0].side.state()))
    assert changes > 0
    assert done.record["bytes"]["hand_off"] == 2 * state * changes


@pytest.mark.parametrize("alone", [{"heads": "private"}, {"clients": 1}])
def test_without_a_change_of_hands_there_is_no_hand_off(finished, alone):
    assert finished(**alone).record["bytes"]["hand_off"] == 0


def test_private_heads_have_one_accuracy_for_each_client(finished):
    record = finished(heads="private").record
    accuracies = [figures["accuracy"] for figures in record["client_figures"]]
    assert len(accuracies) == 3
    assert record["test_accuracy"] == pytest.approx(sum(accuracies) / 3)
    assert len(finished().record["client_figures"]) == 1


def test_the_histogram_counts_every_sample_of_every_client(finished):
    histogram = finished().record["label_histogram"]
    assert [sum(row) for row in histogram] == [20, 20, 20]


def test_every_field_is_documented():
    page = Path(__file__).parents[2] / "docs" / "record.md"
    if not page.is_file():
        pytest.skip("docs/record.md is not written yet")
    assert [n for n in FIELDS if f"`{n}" not in page.read_text()] == []
