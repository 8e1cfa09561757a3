import pytest

from lightsplit.errors import ConfigError
from lightsplit.experiments.settings import parse_change
from lightsplit.sweeps import read_sweep
from lightsplit.sweeps.audit_table import make_audit_options


@pytest.fixture
def read(tmp_path):
    def call(text, **options):
        path = tmp_path / "grid.toml"
        path.write_text(text)
        return read_sweep(path, **options)

    return call


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("= =", "is not a TOML file"),
        ("[bas]\n", "did you mean 'base'?"),
        ("[base]\ncodecs = 'raw'", "base: unknown setting 'codecs'"),
        ("[base]\ncodec = ['raw']", "lists belong in [grid]"),
        ("[grid]\nseeds = [1]", "did you mean 'seed'?"),
        ("[grid]\nseed = []", "an empty list leaves no cell"),
        ("[[cells]]\nratios = 1", "cells 1: unknown setting 'ratios'"),
        ("[cells]\ncodec = 'raw'", "expected tables written as [[cells]]"),
        ("cells = [1]", "expected tables written as [[cells]]"),
        ("[[exclude]]\nx = 1", "exclude 1: unknown setting 'x'"),
        ("base = 3", "base: expected a table [base], got 3"),
        ("title = 3", "title: expected a text, got 3"),
        ("[scales]\nsmall = 3", "scales.small: expected a table"),
        ("[scales.small]\nepoch = 3", "did you mean 'epochs'?"),
        ("[audit]\nattack = 'x'", "did you mean 'attacks'?"),
        ("[audit]\nimages = 'x'", "audit.images: expected int, got 'x'"),
        ("[audit]\nattacks = ['sdar']", "sdar learns in training"),
        ("[audit]\nduring = true\nattacks = ['linear']", "name an attack that learns"),
        ("[scales.small.audit]\nimage = 3", "did you mean 'images'?"),
        ("[scales.small]\naudit = 3", "scales.small.audit: expected a table"),
    ],
)
def test_an_invalid_file_is_refused(read, text, reason):
    with pytest.raises(ConfigError) as refusal:
        read(text)
    assert reason in str(refusal.value)
    assert "grid.toml" in str(refusal.value)


def test_the_small_scale_is_the_default_and_an_unknown_one_is_refused(read):
    text = "[scales.paper]\nepochs = 9\n[scales.small]\nepochs = 1\n"
    assert read(text).common == {"epochs": 1}
    assert read(text, scale="paper").common == {"epochs": 9}
    with pytest.raises(ConfigError, match="unknown scale 'smal'"):
        read(text, scale="smal")


def test_a_file_without_scales_has_none(read):
    assert read("[base]\nepochs = 3").scale == ""
    with pytest.raises(ConfigError, match="unknown scale 'small'"):
        read("[base]\nepochs = 3", scale="small")


def test_a_change_replaces_a_setting_in_the_place_where_the_file_has_it(read):
    text = "[grid]\nseed = [0, 1]\n[[cells]]\ncodec = 'raw'\n"
    text += "[[cells]]\ncodec = 'topk'\nratio = [8, 16]\n"
    sweep = read(text, changes={"seed": 7, "ratio": 4, "epochs": 2})
    assert sweep.common == {"seed": 7, "epochs": 2}
    assert sweep.cells == ({"codec": "raw"}, {"codec": "topk", "ratio": 4})


@pytest.mark.parametrize(
    "text",
    ["ratio = [8, 16]", "codec.ratio = [8, 16]", "[grid.codec]\nratio = [8, 16]"],
)
@pytest.mark.parametrize("name", ["ratio", "codec.ratio"])
def test_a_setting_is_the_same_under_each_of_its_names(read, text, name):
    assert read(f"[grid]\n{text}").common == {"ratio": [8, 16]}
    assert read(f"[grid]\n{text}", changes={name: 4}).common == {"ratio": 4}


def test_an_option_of_a_task_or_a_detector_keeps_its_dotted_name(read):
    text = "[base.task]\nname = 'mine.py'\nwidth = 3\n"
    text += "[base.detector.contra]\nthreshold = 1\n"
    names = ["dataset", "task.width", "detector.contra.threshold"]
    assert list(read(text).common) == names


def test_a_scale_changes_the_audit_too(read):
    text = "[audit]\nattacks = ['sdar']\nduring = true\nbudget = 'full'\n"
    text += "[scales.paper]\n[scales.small]\nepochs = 1\n"
    text += "[scales.small.audit]\nbudget = 'short'\n"
    assert read(text, scale="paper").audit["budget"] == "full"
    small = read(text)
    assert small.audit == {"attacks": ["sdar"], "during": True, "budget": "short"}
    assert small.common == {"epochs": 1}


def test_an_audit_reaches_the_options_of_its_attacks(read):
    sweep = read("[audit]\nattacks = ['decoder:blocks=4', 'linear']\n")
    assert make_audit_options(sweep.audit).attacks == ("decoder:blocks=4", "linear")


def test_an_audit_may_never_save_or_score_what_it_watches(read):
    sweep = read("[audit]\nscore_every = 'never'\nsave_every = 20\n")
    options = make_audit_options(sweep.audit)
    assert (options.score_every, options.save_every) == (None, 20)
    with pytest.raises(ConfigError, match="score_every must be at least 1, got 0"):
        read("[audit]\nscore_every = 0\n")


@pytest.mark.parametrize(
    ("attacks", "reason"),
    [
        ("['decoder:block=4']", "has no option 'block'.*mean 'blocks'"),
        ("['sdar:width=wide']", "must be a whole number, got 'wide'"),
        ("[3]", "audit.attacks: expected names of attacks, got 3"),
    ],
)
def test_an_attack_that_cannot_be_run_is_refused_with_the_file(read, attacks, reason):
    with pytest.raises(ConfigError, match=rf"\.toml: .*{reason}"):
        read(f"[audit]\nduring = true\nattacks = {attacks}\n")


def test_an_unknown_change_is_refused(read):
    with pytest.raises(ConfigError, match="did you mean 'epochs'"):
        read("", changes={"epoch": 3})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("seed=3", 3),
        ("lr=1e-4", 1e-4),
        ("codec=raw", "raw"),
        ('codec="raw"', "raw"),
        ("ratio=[8, 16]", [8, 16]),
        ("freeze_backbone=true", True),
        ("weights=a=b", "a=b"),
    ],
)
def test_a_change_is_written_as_in_a_file(text, value):
    assert parse_change(text) == (text.partition("=")[0], value)


@pytest.mark.parametrize("text", ["seed", "=3", ""])
def test_a_change_without_a_key_or_a_value_is_refused(text):
    with pytest.raises(ConfigError, match="expected key=value"):
        parse_change(text)
