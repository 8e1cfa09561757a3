"""The tables of an experiment file, each a frozen and validated object.

    [task] [split] [codec] [output_codec] [wire] [training] [owners] [guard] [backdoor]
    [server] [augment.NAME] [objective.NAME] [protect_labels.NAME] [detector.NAME]
    [inspector.NAME] [attack.NAME]

The descriptions here are the help texts of the command line, so each setting is
described once. A setting that was not given is absent. The constructor of a codec, an
objective, a detector or an attack decides its options (``experiments.parts``).
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

AtLeastOne = Annotated[int, Field(ge=1)]
Alpha = Annotated[float, Field(gt=0)] | Literal["iid"]
TurnSteps = AtLeastOne | Literal["epoch"]


class Table(BaseModel):
    """Settings that belong together."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False
    )


class Part(BaseModel):
    """A named part with its own options."""

    model_config = ConfigDict(
        frozen=True, extra="allow", strict=True, allow_inf_nan=False
    )

    name: str

    @property
    def options(self) -> dict[str, Any]:
        """The part's own options."""
        return dict(self.model_extra or {})


class TaskTable(Part):
    """The task, and how much of its data is used."""

    name: str = Field(
        "digits",
        description="task to learn: a built-in dataset, my_task.py[:function], or "
        "package.module:function",
    )
    train_limit: AtLeastOne | None = Field(
        None, description="number of random training samples; default: all"
    )
    test_limit: AtLeastOne | None = Field(
        None, description="number of test samples; default: all"
    )
    data_split: Literal["published", "pooled-halves"] = Field(
        "published",
        description="published: the dataset's own training and test sets; "
        "pooled-halves: pool both, train on one half and test on the other, which "
        "belongs to the attacker (as SDAR's authors do)",
    )
    weights: str | None = Field(
        None, description="start from the weights in this .safetensors file"
    )


class SplitTable(Table):
    """Where the model is cut, and which end has the labels."""

    cut: str | None = Field(
        None, description="a named cut such as l1 or l2; default: the model's own"
    )
    head_until: str | None = Field(
        None, description="dotted path of the head's last module"
    )
    tail_from: str | None = Field(
        None, description="dotted path of the tail's first module"
    )
    topology: Literal["u", "vanilla"] = Field(
        "u", description="u: labels stay with the client; vanilla: the server has them"
    )
    freeze_backbone: bool = Field(
        False, description="train only the parts around the backbone"
    )
    freeze_client: bool = Field(
        False,
        description="keep head and tail as they are (give pre-trained --weights): "
        "the client trains its encoder and its objectives alone",
    )
    gradients: Literal["all", "none"] = Field(
        "all",
        description="none: no gradient is ever sent, so none can tell labels; the "
        "backbone stays as it is (give pre-trained --weights), the client trains its "
        "tail, and its head on the objectives alone",
    )
    release: Literal["every-step", "once"] | None = Field(
        None,
        description="once: the client trains head and encoder alone for local-epochs, "
        "freezes them and sends the code of each sample once; the server trains on the "
        "codes that it keeps; default: a code in every step",
    )


class WireTable(Table):
    """How numbers are written on the wire."""

    preset: str | None = Field(
        None,
        description="paper, half, lean or max: sets ratio (32), format, output-codec, "
        "hand-off and hand-off-optimizer unless they are given",
    )
    format: str = Field(
        "fp32",
        description="fp32, fp16, bf16, int8 or int4 for all messages, or code=int8,"
        "output=bf16,output_gradient=…,code_gradient=…",
    )
    rounding: str | None = Field(
        None,
        description="nearest, stochastic or dither, or one per message as for format; "
        "default: nearest forward, dither for gradients",
    )
    hand_off: Literal["fp32", "bf16", "int8"] = Field(
        "fp32", description="number format of a travelling head"
    )
    hand_off_optimizer: Literal["travels", "stays"] = Field(
        "travels",
        description="a travelling head's optimizer state: travels with it, or stays: "
        "each client keeps its own",
    )


class TrainingTable(Table):
    """How, how long and where to train."""

    epochs: int = Field(5, ge=1, description="passes over the data")
    max_steps: AtLeastOne | None = Field(
        None,
        description="stop after this many steps (with release once, of those with the "
        "server); default: no limit",
    )
    local_epochs: AtLeastOne | None = Field(
        None,
        description="passes over the data before codes are sent once; default with "
        "release once: 5",
    )
    batch_size: int = Field(64, ge=2, description="samples per mini-batch")
    turn_steps: TurnSteps = Field(
        8,
        description="mini-batches per turn, or epoch for a client's whole epoch; the "
        "paper has 1",
    )
    optimizer: Literal["adam", "adamw", "amsgrad", "sgd"] = Field(
        "adam", description="optimizer of both sides; amsgrad is Adam with AMSGrad"
    )
    lr: float = Field(1e-3, gt=0, le=1e6, description="learning rate on both sides")
    momentum: float = Field(0.0, ge=0, lt=1, description="momentum of sgd")
    lr_schedule: Literal["constant", "step", "cosine"] = Field(
        "constant",
        description="constant; step: times lr-decay at each of lr-drops; cosine: down "
        "to 0 at the end of the run",
    )
    warm_up: int = Field(
        0,
        ge=0,
        description="steps of the run in which the learning rate rises to its value",
    )
    lr_decay: float = Field(
        0.1, gt=0, le=1, description="factor of each drop of lr-schedule step"
    )
    lr_drops: str = Field(
        "0.5,0.75", description="places of the drops, as shares of the run"
    )
    clip: float | None = Field(
        None,
        gt=0,
        description="largest norm of each side's gradient; default: no limit",
    )
    precision: Literal["fp32", "bf16"] = Field(
        "fp32",
        description="bf16: compute the model in bfloat16 where torch deems it safe "
        "(autocast); weights, codes and losses stay in fp32",
    )
    accumulate: int = Field(
        1, ge=1, description="mini-batches of a turn whose mean gradient is one update"
    )
    weight_decay: float = Field(
        0.0, ge=0, le=1e6, description="weight decay of any optimizer"
    )
    norm_limit: float = Field(
        1e6,
        gt=0,
        description="refuse a step with a larger number in a code or an output "
        "gradient, or with a larger norm of the gradient of the server's weights",
    )
    eval_every: AtLeastOne | None = Field(
        None, description="rounds between evaluations; default: once per epoch"
    )
    patience: AtLeastOne | None = Field(
        None,
        description="evaluations without a new best before stopping; default: no limit",
    )
    seed: int = Field(0, ge=0, description="seed of everything random in the run")
    device: str = Field("cpu", description="cpu, cuda, cuda:1 …")


class OwnersTable(Table):
    """The data owners, and how data and heads are distributed among them."""

    clients: int = Field(5, ge=1, description="number of data owners")
    alpha: Alpha = Field(
        "iid", description="Dirichlet label skew, or iid for equal label mixes"
    )
    heads: Literal["shared", "private"] = Field(
        "shared", description="shared: one head travels; private: one head per client"
    )
    rounds: Literal["turns", "parallel", "splitfed-v1", "splitfed-v2"] = Field(
        "turns",
        description="turns: one owner after the other; parallel: every owner computes "
        "a batch at the same time, the server joins them and updates once, and owners "
        "with a shared head average its gradients, which the server cannot read; "
        "splitfed-v1: every owner trains turn_steps batches with a backbone copy of "
        "its own, then all weights are averaged; splitfed-v2: one backbone, owners in "
        "random order, head and tail are averaged after each round",
    )
    owners_per_round: AtLeastOne | None = Field(
        None,
        description="rounds: the most owners of a round, drawn anew for each from the "
        "run's seed; an epoch has as many rounds as all owners need; default: all "
        "who are there",
    )
    evaluate: Literal["one", "every"] | None = Field(
        None,
        description="who tests a shared model when an evaluation is due: every owner, "
        "on its own test data, or one for all; default: every over the network with a "
        "task of your own, else one, because all have the same test data",
    )


class GuardTable(Table):
    """The reaction to a client that a detector flags."""

    on_flag: Literal["warn", "skip", "stop"] = Field(
        "warn", description="on a flagged client: warn, skip (undo its turns) or stop"
    )
    every: AtLeastOne | None = Field(
        None, description="rounds between verdicts; default: once per epoch"
    )


class BackdoorTable(Table):
    """The backdoor that malicious clients plant."""

    trigger: str = Field(
        description="trigger that malicious clients plant; default: none"
    )
    malicious: float | None = Field(
        None,
        gt=0,
        description="malicious share of the clients, or their number if 1 or more; "
        "default: 0.1",
    )
    malicious_clients: str | None = Field(
        None, description="malicious clients, such as 0,4; default: drawn from the seed"
    )
    poison_ratio: float = Field(
        0.3, gt=0, le=1, description="poisoned share of a malicious client's samples"
    )
    target_class: int = Field(
        0, ge=0, description="class that samples with the trigger should be taken for"
    )
    twin: bool = Field(
        False, description="also train without poison, for the backdoor's base rate"
    )


class ServerTable(Table):
    """The behaviour of the server."""

    statistics: Literal["per-client", "shared", "batch", "frozen"] | None = Field(
        None,
        description="running statistics of the server's normalisation layers: "
        "per-client, shared, batch (each batch by itself, outside training too) or "
        "frozen; default: per-client if heads are private, else shared",
    )
    encrypted: bool = Field(
        False,
        description="predictions over the network are encrypted: the server computes "
        "with codes that it cannot read (needs lightsplit[he] and a server whose part "
        "is linear); training is not encrypted",
    )
    hijack: bool = Field(
        False, description="the server hijacks the heads (FSHA) and trains no task"
    )


class ObjectiveTable(BaseModel):
    """A term that clients add to their loss, with options of its own."""

    model_config = ConfigDict(
        frozen=True, extra="allow", strict=True, allow_inf_nan=False
    )

    weight: float = Field(
        1.0, ge=0, le=1e6, description="weight of the term in the loss"
    )

    @property
    def options(self) -> dict[str, Any]:
        """The term's own options."""
        return dict(self.model_extra or {})
