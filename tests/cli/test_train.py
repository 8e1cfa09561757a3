import json

import pytest

from lightsplit.experiments.parts import options_of_all
from lightsplit.experiments.settings import FIELDS, known_settings

pytestmark = pytest.mark.slow


def contents(folder):
    return {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_json_is_the_record_and_nothing_else(lightsplit, quick, tmp_path):
    result = lightsplit("train", *quick, "--out", tmp_path / "run", "--json")
    record = json.loads((tmp_path / "run" / "record.json").read_text())
    assert json.loads(result.stdout) == record
    assert result.stderr == ""


def test_people_get_the_figures_and_the_folder(lightsplit, quick, tmp_path):
    result = lightsplit("train", *quick, "--out", tmp_path / "run")
    for words in ("accuracy", "ratio of the whole step", "hand off"):
        assert words in result.stdout
    assert result.stdout.rstrip().endswith(str(tmp_path / "run"))


def test_without_out_every_run_gets_a_folder_of_its_own(
    lightsplit, quick, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        lightsplit("train", *quick, "--max-steps", 1)
    assert len(list((tmp_path / "runs").iterdir())) == 2


def test_options_override_the_file(lightsplit, quick, tmp_path):
    (tmp_path / "my.toml").write_text(
        '[codec]\nname = "topk"\n[training]\nseed = 5\nmax_steps = 2\n'
    )
    options = [*quick, "--seed", 6, "--out", tmp_path / "run", "--json"]
    record = json.loads(lightsplit("train", tmp_path / "my.toml", *options).stdout)
    assert (record["experiment"]["codec"]["name"], record["seed"]) == ("topk", 6)
    assert record["steps"] == 2


def test_the_file_of_a_run_repeats_it(lightsplit, quick, tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    lightsplit("train", *quick, "--ratio", 5.5, "--out", one)
    lightsplit("train", one / "experiment.toml", "--out", two)
    for name in ("experiment.toml", "model.safetensors"):
        assert (one / name).read_bytes() == (two / name).read_bytes()


def test_a_switch_can_be_turned_off_again(lightsplit, quick, tmp_path):
    (tmp_path / "my.toml").write_text(
        "[split]\nfreeze_backbone = true\n[training]\nmax_steps = 1\n"
    )
    options = [*quick, "--no-freeze-backbone", "--out", tmp_path / "run", "--json"]
    record = json.loads(lightsplit("train", tmp_path / "my.toml", *options).stdout)
    assert record["experiment"]["split"]["freeze_backbone"] is False


def test_an_existing_run_is_refused_and_left_as_it_was(
    lightsplit, refused, quick, tmp_path
):
    lightsplit("train", *quick, "--max-steps", 1, "--out", tmp_path / "run")
    before = contents(tmp_path)
    assert "not an empty folder" in refused("train", *quick, "--out", tmp_path / "run")
    assert contents(tmp_path) == before


def test_a_run_that_cannot_begin_leaves_no_folder(refused, quick, tmp_path):
    missing = ["--weights", tmp_path / "nothing.safetensors"]
    refused("train", *quick, *missing, "--out", tmp_path / "run")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("place", ["file", "file/run", "/proc/nowhere"])
def test_a_folder_that_cannot_be_made_is_refused(refused, quick, tmp_path, place):
    (tmp_path / "file").write_text("mine")
    assert place in refused("train", *quick, "--out", tmp_path / place)


@pytest.mark.parametrize(
    "options",
    [
        ["--clients", "5000"],
        ["--batch-size", "1"],
        ["--ratio", "1e9"],
        ["--ratio", "nan"],
        ["--ratio", "0.5"],
        ["--wcc", "inf"],
        ["--lr", "nan"],
        ["--lr", "1e300"],
        ["--seed", "-1"],
        ["--alpha", "-1"],
        ["--alpha", "inf"],
        ["--train-limit", "1"],
        ["--weights", "nofile"],
        ["--weights", "/dev/null"],
        ["--device", "cuda:99"],
        ["--device", "meta"],
        ["--device", ""],
        ["--codec", "raw", "--ratio", "8"],
        ["--codec", "raw", "--projection", "dct"],
        ["--codec", "lightsplit-l", "--batch-size", "2", "--train-limit", "7"],
        ["--codec", "lightsplit-l", "--hidden", "99999999999999999999"],
        ["--codec", "lightsplit"],
        ["--model", "resnet18"],
        ["--dataset", ""],
        ["--cut", "l3"],
        ["--topology", "w"],
        ["--momentum", "0.5"],
        ["nofile.toml"],
        ["/"],
    ],
)
def test_invalid_options_are_refused_in_one_line(refused, quick, tmp_path, options):
    message = refused("train", *quick, *options, "--out", tmp_path / "run")
    assert "\n" not in message
    assert not list(tmp_path.glob("run/*"))


@pytest.mark.parametrize(
    "options",
    [
        ["--clients", "many"],
        ["--clients", "1.5"],
        ["--lr", "fast"],
        ["--checkpoint-every", "-1"],
        ["--no-such-option"],
        ["one.toml", "two.toml"],
    ],
)
def test_a_wrong_usage_ends_with_code_two(lightsplit, options):
    result = lightsplit("train", *options, code=2)
    assert result.stdout == ""
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    "options",
    [
        ["--test-limit", "1"],
        ["--batch-size", "99999999999999999999"],
        ["--turn-steps", "99999999999999999999"],
        ["--epochs", "99999999999999999999"],
        ["--seed", "99999999999999999999999"],
        ["--alpha", "1e-300"],
        ["--alpha", "1e300"],
        ["--batch-size", "2"],
        ["--clients", "30"],
    ],
)
def test_extreme_settings_that_can_be_are_run(lightsplit, quick, tmp_path, options):
    arguments = [*quick, "--max-steps", "2", *options, "--out", tmp_path / "run"]
    assert json.loads(lightsplit("train", *arguments, "--json").stdout)["steps"] <= 2


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("= =", "is not a TOML file"),
        ("[codecs]\nname = 'raw'", "my.toml: unknown table 'codecs'"),
        ("[codec]\nname = 3", "codec.name: input should be a valid string"),
        ("[task]\nname = ['digits']", "task.name: input should be a valid string"),
        ("[training]\nseed = true", "training.seed: input should be a valid integer"),
        ("[owners]\nclients = 2026-01-01", "clients: input should be a valid integer"),
        ("codec = 'raw'", "my.toml: an experiment file has tables: instead of codec"),
        ("clients = 2026-01-01", "write [owners] clients = 2026-01-01"),
        ("freeze_backbone = true", "write [split] freeze_backbone = true"),
    ],
)
def test_a_damaged_experiment_file_is_refused(refused, tmp_path, content, reason):
    (tmp_path / "my.toml").write_text(content)
    out = ["--out", tmp_path / "run"]
    assert reason in refused("train", tmp_path / "my.toml", *out)


def test_missing_data_offline_gives_an_error_that_lists_the_files_and_folder(
    refused, tmp_path, offline
):
    data = ["--dataset", "fashion-mnist", "--data-dir", tmp_path / "data"]
    message = refused("train", *data, "--out", tmp_path / "run")
    assert str(tmp_path / "data" / "fashion-mnist") in message
    assert "--data-dir" in message


def test_a_full_disk_ends_in_one_line(refused, quick, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device", "model.safetensors")

    monkeypatch.setattr("lightsplit.results.tensors.save", full)
    out = ["--max-steps", 1, "--out", tmp_path / "run", "--json"]
    message = refused("train", *quick, *out)
    assert message == "error: model.safetensors: No space left on device"


def test_help_shows_every_setting_and_its_description(lightsplit):
    text = " ".join(lightsplit("train", "--help").stdout.split())
    for name in known_settings():
        assert name == "attack" or f"--{name.replace('_', '-')}" in text
    for table in FIELDS.values():
        for field in table.model_fields.values():
            assert field.description.split(":")[0] in text
    for kind in ("codec", "detector"):
        for description in options_of_all(kind).values():
            assert description.split(":")[0].split("``")[0] in text
