"""All settings of a run: TOML or flags in, one frozen and validated object out.

The descriptions here are the help texts of the command line: a setting is written down
once.
"""

import tomllib
from pathlib import Path
from typing import Any, Literal

import tomli_w
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from lightsplit.backdoors import INSPECTORS, TRIGGERS, draw_malicious, parse_detectors
from lightsplit.codecs import CODECS, OUTPUT_CODECS
from lightsplit.data import DATASETS
from lightsplit.errors import ConfigError
from lightsplit.experiments.presets import SHORTENING, default_ratio, resolve_wire
from lightsplit.models import CUTS, MODELS
from lightsplit.registry import unknown_name

# Model and lift-back width that the paper's table pairs with each dataset; shape of an
# image and number of classes, which a server must know without having the data.
DEFAULT_MODELS = {
    "digits": "tinycnn",
    "mnist": "simplecnn",
    "fashion-mnist": "simplecnn",
    "cifar10": "resnet18",
    "cifar100": "resnet18",
    "gtsrb": "micronnet",
}
FACTS: dict[str, tuple[tuple[int, int, int], int]] = {
    "digits": ((1, 8, 8), 10),
    "mnist": ((1, 28, 28), 10),
    "fashion-mnist": ((1, 28, 28), 10),
    "cifar10": ((3, 32, 32), 10),
    "cifar100": ((3, 32, 32), 100),
    "gtsrb": ((3, 32, 32), 43),
}
BACKDOOR_SETTINGS = (
    "trigger",
    "malicious",
    "malicious_clients",
    "poison_ratio",
    "target_class",
    "twin",
    "detector",
    "on_flag",
    "detect_every",
    "threshold",
    "false_alarm_rate",
    "consensus",
    "sides",
    "trusted_client",
    "inspector",
    "hijack",
)
DEFAULT_HIDDEN = {"cifar10": 512, "cifar100": 2048}


class Experiment(BaseModel):
    """One run, completely described; the paper's values where it gives any."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False
    )

    dataset: str = Field("digits", description="what to train on")
    model: str = Field("", description="model of the zoo; default: the dataset's own")
    cut: str = Field(
        "", description="where the head ends, l1 or l2 say; default: the model's own"
    )
    topology: Literal["u", "vanilla"] = Field(
        "u", description="u: labels stay with the client; vanilla: the server has them"
    )
    codec: str = Field("lightsplit-f", description="what happens at the cut")
    ratio: float = Field(
        0, ge=0, description="d / k at the cut; default: 8, and 1 for raw"
    )
    projection: Literal["", "haar", "uniform", "dct"] = Field(
        "", description="how R is drawn; default: haar (dct needs no matrix)"
    )
    scale: Literal["", "orthonormal", "jl"] = Field(
        "", description="orthonormal (paper) or jl: times sqrt(d/k) each way"
    )
    hidden: int = Field(
        0, ge=0, le=65536, description="width m of lightsplit-l; default: the paper's"
    )
    wire: str = Field(
        "",
        description="paper, half, lean or max: sets ratio (32), format, output-codec "
        "and hand-off unless they are given",
    )
    format: str = Field(
        "",
        description="fp32, fp16, bf16, int8 or int4 for all messages, or code=int8,"
        "output=bf16,output_gradient=…,code_gradient=…; default: fp32",
    )
    rounding: str = Field(
        "",
        description="nearest, stochastic or dither, or as for format; default: nearest "
        "forward, dither for gradients",
    )
    output_codec: str = Field(
        "", description="what happens at the back cut; default: raw"
    )
    output_size: int = Field(
        0, ge=0, description="values per sample of a shortened output; default: 48"
    )
    hand_off: Literal["", "fp32", "bf16", "int8"] = Field(
        "", description="how a travelling head is written; default: fp32"
    )
    wcc: float = Field(
        0.0, ge=0, le=1e6, description="within-class compaction (the paper's λ)"
    )
    clients: int = Field(5, ge=1, description="how many data owners")
    alpha: float = Field(
        0.0, ge=0, description="Dirichlet label skew; 0: every client alike (IID)"
    )
    heads: Literal["shared", "private"] = Field(
        "shared", description="shared: one head travels; private: each client its own"
    )
    turn_steps: int = Field(
        1, ge=0, description="mini-batches per turn; 0: a client's whole epoch"
    )
    epochs: int = Field(5, ge=1, description="passes over the data")
    max_steps: int = Field(0, ge=0, description="stop after so many steps; 0: no limit")
    batch_size: int = Field(64, ge=2, description="samples per mini-batch")
    optimizer: Literal["adam", "adamw", "amsgrad", "sgd"] = Field(
        "adam", description="on both sides; amsgrad: Adam that never forgets a peak"
    )
    lr: float = Field(1e-3, gt=0, le=1e6, description="learning rate on both sides")
    momentum: float = Field(0.0, ge=0, lt=1, description="of sgd")
    weight_decay: float = Field(0.0, ge=0, le=1e6, description="of any optimizer")
    eval_every: int = Field(
        0, ge=0, description="rounds between evaluations; 0: once per epoch"
    )
    patience: int = Field(
        0, ge=0, description="evaluations without a new best before stopping; 0: never"
    )
    seed: int = Field(0, ge=0, description="of everything random in the run")
    train_limit: int = Field(
        0, ge=0, description="train on so many random samples; 0: all"
    )
    test_limit: int = Field(0, ge=0, description="test on so many; 0: all")
    data_split: Literal["published", "pooled-halves"] = Field(
        "published",
        description="published: the dataset's own training and test set; "
        "pooled-halves: both pooled, half to train on and half to test on, as SDAR's "
        "authors do: the second half is an attacker's",
    )
    freeze_backbone: bool = Field(
        False, description="train only what is around the backbone"
    )
    weights: str = Field(
        "", description="start from the weights in this .safetensors file"
    )
    device: str = Field("cpu", description="cpu, cuda, cuda:1 …")
    trigger: str = Field(
        "", description="what malicious clients plant; empty: nobody is malicious"
    )
    malicious: float = Field(
        0.0,
        ge=0,
        description="share of the clients, or from 1 on how many; default: 0.1",
    )
    malicious_clients: str = Field(
        "", description="which ones, such as 0,4; default: drawn from the seed"
    )
    poison_ratio: float = Field(
        0.3, gt=0, le=1, description="share of a malicious client's samples"
    )
    target_class: int = Field(
        0, ge=0, description="what samples with the trigger shall be taken for"
    )
    twin: bool = Field(
        False, description="train without poison too, for the backdoor's base rate"
    )
    detector: str = Field(
        "",
        description="what watches the clients, or several such as cosine-code,contra, "
        "of which the first acts; empty: nothing",
    )
    on_flag: Literal["warn", "skip", "stop"] = Field(
        "warn", description="a flagged client: say so, undo its turns, or end the run"
    )
    detect_every: int = Field(
        0, ge=0, description="rounds between verdicts; 0: once per epoch"
    )
    threshold: float = Field(
        0.0, ge=0, description="flag scores above it; default: the detector's own"
    )
    false_alarm_rate: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="cosine detectors: set the threshold for so many false alarms",
    )
    consensus: Literal["", "mean", "median"] = Field(
        "", description="cosine detectors: of all (default: mean) or of all the others"
    )
    sides: Literal["", "one", "two"] = Field(
        "", description="cosine detectors: flag both tails (default: two) or the low"
    )
    trusted_client: int = Field(
        0, ge=0, description="fltrust: the client with public data"
    )
    inspector: str = Field(
        "", description="what clients watch the server with; empty: nothing"
    )
    hijack: bool = Field(
        False, description="the server hijacks the heads (FSHA) and trains no task"
    )

    @model_validator(mode="before")
    @classmethod
    def _resolve(cls, data: dict[str, Any]) -> dict[str, Any]:
        """Fill in what follows from other settings: the stored file is whole."""
        data = dict(data)
        dataset = str(data.get("dataset", "digits"))  # its type is checked later
        codec = data.get("codec", "lightsplit-f")
        if data.get("model", "") == "":
            data["model"] = DEFAULT_MODELS.get(dataset, "")
        if data.get("cut", "") == "" and str(data["model"]) in CUTS:
            data["cut"] = CUTS[str(data["model"])].default
        if data.get("ratio", 0) == 0:
            data["ratio"] = default_ratio(data)
        if data.get("hidden", 0) == 0 and codec == "lightsplit-l":
            data["hidden"] = DEFAULT_HIDDEN.get(dataset, 128)
        if codec in ("lightsplit-f", "lightsplit-l"):
            defaults = {"projection": "haar", "scale": "orthonormal"}
            data |= {k: v for k, v in defaults.items() if data.get(k, "") == ""}
        names_nobody = not (data.get("malicious") or data.get("malicious_clients"))
        if data.get("trigger", "") != "" and names_nobody:
            data["malicious"] = 0.1
        data["detector"] = ",".join(parse_detectors(str(data.get("detector", ""))))
        classes = FACTS[dataset][1] if dataset in FACTS else 0
        return data | resolve_wire(data, classes)

    @model_validator(mode="after")
    def _check_names(self) -> "Experiment":
        DATASETS.get(self.dataset)
        MODELS.get(self.model)
        CODECS.get(self.codec)
        CUTS[self.model].resolve(self.cut)
        if self.momentum and self.optimizer != "sgd":
            raise ValueError(f"momentum is sgd's, not {self.optimizer}'s")
        self._check_output_codec()
        return self

    def _check_output_codec(self) -> None:
        OUTPUT_CODECS.get(self.output_codec)
        if self.output_size and self.output_codec not in SHORTENING:
            raise ValueError(
                f"output codec {self.output_codec!r} sends the whole output: "
                f"output_size must be 0, got {self.output_size}"
            )
        if self.topology == "vanilla" and self.output_codec != "raw":
            raise ValueError(
                "no output crosses the wire in vanilla training: output_codec must be "
                f"raw, got {self.output_codec!r}"
            )

    @model_validator(mode="after")
    def _check_backdoor(self) -> "Experiment":
        if self.trigger:
            TRIGGERS.get(self.trigger)
            self.malicious_indices()
        elif self.malicious or self.malicious_clients or self.twin:
            raise ValueError("malicious clients need a trigger to plant")
        if self.inspector:
            INSPECTORS.get(self.inspector)
        if self.hijack and (self.detector or self.trigger):
            raise ValueError("a server that hijacks has no use for trigger or detector")
        return self

    @model_validator(mode="after")
    def _check_detector(self) -> "Experiment":
        if not self.detectors() and self.on_flag != "warn":
            raise ValueError(f"on_flag {self.on_flag} needs a detector")
        if self.on_flag == "skip" and self.hand_off != "fp32":
            raise ValueError(
                "what hand-offs round away cannot be undone: on_flag skip needs "
                f"hand_off fp32, got {self.hand_off}"
            )
        if self.trusted_client >= self.clients:
            raise ValueError(
                f"trusted_client must be from 0 to {self.clients - 1}, "
                f"got {self.trusted_client}"
            )
        return self

    def detectors(self) -> tuple[str, ...]:
        """Return the names of all detectors; the first one acts, the others watch."""
        return parse_detectors(self.detector)

    def malicious_indices(self) -> tuple[int, ...]:
        """Return which clients are malicious, in order; none without a trigger."""
        return draw_malicious(
            self.malicious_clients or self.malicious if self.trigger else 0,
            clients=self.clients,
            spared=self.trusted_client if "fltrust" in self.detectors() else None,
            seed=self.seed,
        )

    def detector_options(self) -> dict[str, Any]:
        """Return the detectors' own settings, those left open omitted."""
        options = {
            "threshold": self.threshold,
            "false_alarm_rate": self.false_alarm_rate,
            "consensus": self.consensus,
            "sides": self.sides,
        }
        chosen = {name: value for name, value in options.items() if value}
        return chosen | (
            {"trusted": self.trusted_client} if "fltrust" in self.detectors() else {}
        )

    def codec_options(self) -> dict[str, Any]:
        """Return the codec's own settings, those left open omitted."""
        options = {
            "projection": self.projection,
            "scale": self.scale,
            "hidden": self.hidden,
        }
        return {name: value for name, value in options.items() if value}

    def to_toml(self) -> str:
        """Return the experiment as a file that gives it back."""
        return tomli_w.dumps(self.model_dump())


def make_experiment(settings: dict[str, Any]) -> Experiment:
    """Validate settings, naming the nearest known key for one that is unknown."""
    known = list(Experiment.model_fields)
    for key in settings:
        if key not in known:
            raise ConfigError(unknown_name("setting", key, known))
    try:
        return Experiment(**settings)
    except ValidationError as error:
        raise ConfigError("; ".join(map(_sentence, error.errors()))) from error


def read_experiment(path: Path) -> dict[str, Any]:
    """Return the settings in a TOML file, not yet validated."""
    try:
        return tomllib.loads(path.read_text())
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not a TOML file: {error}") from error


def _sentence(error: Any) -> str:
    where = ".".join(str(part) for part in error["loc"])
    what = error["msg"].removeprefix("Value error, ")
    what = what[:1].lower() + what[1:]
    return f"{where}: {what}, got {error['input']!r}" if where else what
