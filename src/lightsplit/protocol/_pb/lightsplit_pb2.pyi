from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DTYPE_UNSPECIFIED: _ClassVar[DType]
    DTYPE_FLOAT32: _ClassVar[DType]
    DTYPE_FLOAT64: _ClassVar[DType]
    DTYPE_FLOAT16: _ClassVar[DType]
    DTYPE_BFLOAT16: _ClassVar[DType]
    DTYPE_INT8: _ClassVar[DType]
    DTYPE_UINT8: _ClassVar[DType]
    DTYPE_INT16: _ClassVar[DType]
    DTYPE_INT32: _ClassVar[DType]
    DTYPE_INT64: _ClassVar[DType]

class Format(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FORMAT_PLAIN: _ClassVar[Format]
DTYPE_UNSPECIFIED: DType
DTYPE_FLOAT32: DType
DTYPE_FLOAT64: DType
DTYPE_FLOAT16: DType
DTYPE_BFLOAT16: DType
DTYPE_INT8: DType
DTYPE_UINT8: DType
DTYPE_INT16: DType
DTYPE_INT32: DType
DTYPE_INT64: DType
FORMAT_PLAIN: Format

class Frame(_message.Message):
    __slots__ = ("code", "output", "output_gradient", "code_gradient", "hello", "welcome", "ready", "grant", "turn_done", "finished", "refusal", "heard", "update", "updated", "part", "release", "recall", "noted", "encrypted_code", "encrypted_output", "share", "total")
    CODE_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_GRADIENT_FIELD_NUMBER: _ClassVar[int]
    CODE_GRADIENT_FIELD_NUMBER: _ClassVar[int]
    HELLO_FIELD_NUMBER: _ClassVar[int]
    WELCOME_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    GRANT_FIELD_NUMBER: _ClassVar[int]
    TURN_DONE_FIELD_NUMBER: _ClassVar[int]
    FINISHED_FIELD_NUMBER: _ClassVar[int]
    REFUSAL_FIELD_NUMBER: _ClassVar[int]
    HEARD_FIELD_NUMBER: _ClassVar[int]
    UPDATE_FIELD_NUMBER: _ClassVar[int]
    UPDATED_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    RECALL_FIELD_NUMBER: _ClassVar[int]
    NOTED_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_CODE_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_OUTPUT_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    code: CodeMessage
    output: OutputMessage
    output_gradient: OutputGradient
    code_gradient: CodeGradient
    hello: Hello
    welcome: Welcome
    ready: Ready
    grant: Grant
    turn_done: TurnDone
    finished: Finished
    refusal: Refusal
    heard: Heard
    update: Update
    updated: Updated
    part: Part
    release: Release
    recall: Recall
    noted: Noted
    encrypted_code: EncryptedCode
    encrypted_output: EncryptedOutput
    share: Share
    total: Total
    def __init__(self, code: _Optional[_Union[CodeMessage, _Mapping]] = ..., output: _Optional[_Union[OutputMessage, _Mapping]] = ..., output_gradient: _Optional[_Union[OutputGradient, _Mapping]] = ..., code_gradient: _Optional[_Union[CodeGradient, _Mapping]] = ..., hello: _Optional[_Union[Hello, _Mapping]] = ..., welcome: _Optional[_Union[Welcome, _Mapping]] = ..., ready: _Optional[_Union[Ready, _Mapping]] = ..., grant: _Optional[_Union[Grant, _Mapping]] = ..., turn_done: _Optional[_Union[TurnDone, _Mapping]] = ..., finished: _Optional[_Union[Finished, _Mapping]] = ..., refusal: _Optional[_Union[Refusal, _Mapping]] = ..., heard: _Optional[_Union[Heard, _Mapping]] = ..., update: _Optional[_Union[Update, _Mapping]] = ..., updated: _Optional[_Union[Updated, _Mapping]] = ..., part: _Optional[_Union[Part, _Mapping]] = ..., release: _Optional[_Union[Release, _Mapping]] = ..., recall: _Optional[_Union[Recall, _Mapping]] = ..., noted: _Optional[_Union[Noted, _Mapping]] = ..., encrypted_code: _Optional[_Union[EncryptedCode, _Mapping]] = ..., encrypted_output: _Optional[_Union[EncryptedOutput, _Mapping]] = ..., share: _Optional[_Union[Share, _Mapping]] = ..., total: _Optional[_Union[Total, _Mapping]] = ...) -> None: ...

class Tensor(_message.Message):
    __slots__ = ("dtype", "format", "shape", "data")
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    dtype: DType
    format: Format
    shape: _containers.RepeatedScalarFieldContainer[int]
    data: bytes
    def __init__(self, dtype: _Optional[_Union[DType, str]] = ..., format: _Optional[_Union[Format, str]] = ..., shape: _Optional[_Iterable[int]] = ..., data: _Optional[bytes] = ...) -> None: ...

class CodeMessage(_message.Message):
    __slots__ = ("client", "step", "is_training", "values", "side", "labels", "companions")
    CLIENT_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    IS_TRAINING_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    SIDE_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    COMPANIONS_FIELD_NUMBER: _ClassVar[int]
    client: int
    step: int
    is_training: bool
    values: Tensor
    side: _containers.RepeatedCompositeFieldContainer[Tensor]
    labels: Tensor
    companions: _containers.RepeatedCompositeFieldContainer[Tensor]
    def __init__(self, client: _Optional[int] = ..., step: _Optional[int] = ..., is_training: _Optional[bool] = ..., values: _Optional[_Union[Tensor, _Mapping]] = ..., side: _Optional[_Iterable[_Union[Tensor, _Mapping]]] = ..., labels: _Optional[_Union[Tensor, _Mapping]] = ..., companions: _Optional[_Iterable[_Union[Tensor, _Mapping]]] = ...) -> None: ...

class OutputMessage(_message.Message):
    __slots__ = ("client", "step", "values", "side")
    CLIENT_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    SIDE_FIELD_NUMBER: _ClassVar[int]
    client: int
    step: int
    values: Tensor
    side: _containers.RepeatedCompositeFieldContainer[Tensor]
    def __init__(self, client: _Optional[int] = ..., step: _Optional[int] = ..., values: _Optional[_Union[Tensor, _Mapping]] = ..., side: _Optional[_Iterable[_Union[Tensor, _Mapping]]] = ...) -> None: ...

class OutputGradient(_message.Message):
    __slots__ = ("client", "step", "gradient", "side")
    CLIENT_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    GRADIENT_FIELD_NUMBER: _ClassVar[int]
    SIDE_FIELD_NUMBER: _ClassVar[int]
    client: int
    step: int
    gradient: Tensor
    side: _containers.RepeatedCompositeFieldContainer[Tensor]
    def __init__(self, client: _Optional[int] = ..., step: _Optional[int] = ..., gradient: _Optional[_Union[Tensor, _Mapping]] = ..., side: _Optional[_Iterable[_Union[Tensor, _Mapping]]] = ...) -> None: ...

class CodeGradient(_message.Message):
    __slots__ = ("client", "step", "loss", "gradient", "side")
    CLIENT_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    LOSS_FIELD_NUMBER: _ClassVar[int]
    GRADIENT_FIELD_NUMBER: _ClassVar[int]
    SIDE_FIELD_NUMBER: _ClassVar[int]
    client: int
    step: int
    loss: float
    gradient: Tensor
    side: _containers.RepeatedCompositeFieldContainer[Tensor]
    def __init__(self, client: _Optional[int] = ..., step: _Optional[int] = ..., loss: _Optional[float] = ..., gradient: _Optional[_Union[Tensor, _Mapping]] = ..., side: _Optional[_Iterable[_Union[Tensor, _Mapping]]] = ...) -> None: ...

class Release(_message.Message):
    __slots__ = ("client", "step", "is_training", "first", "values", "side")
    CLIENT_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    IS_TRAINING_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    SIDE_FIELD_NUMBER: _ClassVar[int]
    client: int
    step: int
    is_training: bool
    first: int
    values: Tensor
    side: _containers.RepeatedCompositeFieldContainer[Tensor]
    def __init__(self, client: _Optional[int] = ..., step: _Optional[int] = ..., is_training: _Optional[bool] = ..., first: _Optional[int] = ..., values: _Optional[_Union[Tensor, _Mapping]] = ..., side: _Optional[_Iterable[_Union[Tensor, _Mapping]]] = ...) -> None: ...

class Recall(_message.Message):
    __slots__ = ("client", "step", "is_training", "numbers")
    CLIENT_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    IS_TRAINING_FIELD_NUMBER: _ClassVar[int]
    NUMBERS_FIELD_NUMBER: _ClassVar[int]
    client: int
    step: int
    is_training: bool
    numbers: Tensor
    def __init__(self, client: _Optional[int] = ..., step: _Optional[int] = ..., is_training: _Optional[bool] = ..., numbers: _Optional[_Union[Tensor, _Mapping]] = ...) -> None: ...

class Noted(_message.Message):
    __slots__ = ("client", "step")
    CLIENT_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    client: int
    step: int
    def __init__(self, client: _Optional[int] = ..., step: _Optional[int] = ...) -> None: ...

class EncryptedCode(_message.Message):
    __slots__ = ("client", "step", "ciphertext")
    CLIENT_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    CIPHERTEXT_FIELD_NUMBER: _ClassVar[int]
    client: int
    step: int
    ciphertext: bytes
    def __init__(self, client: _Optional[int] = ..., step: _Optional[int] = ..., ciphertext: _Optional[bytes] = ...) -> None: ...

class EncryptedOutput(_message.Message):
    __slots__ = ("client", "step", "ciphertext")
    CLIENT_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    CIPHERTEXT_FIELD_NUMBER: _ClassVar[int]
    client: int
    step: int
    ciphertext: bytes
    def __init__(self, client: _Optional[int] = ..., step: _Optional[int] = ..., ciphertext: _Optional[bytes] = ...) -> None: ...

class Share(_message.Message):
    __slots__ = ("client", "step", "numbers", "nonces")
    CLIENT_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    NUMBERS_FIELD_NUMBER: _ClassVar[int]
    NONCES_FIELD_NUMBER: _ClassVar[int]
    client: int
    step: int
    numbers: Tensor
    nonces: Tensor
    def __init__(self, client: _Optional[int] = ..., step: _Optional[int] = ..., numbers: _Optional[_Union[Tensor, _Mapping]] = ..., nonces: _Optional[_Union[Tensor, _Mapping]] = ...) -> None: ...

class Total(_message.Message):
    __slots__ = ("client", "step", "samples", "numbers", "nonces")
    CLIENT_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    SAMPLES_FIELD_NUMBER: _ClassVar[int]
    NUMBERS_FIELD_NUMBER: _ClassVar[int]
    NONCES_FIELD_NUMBER: _ClassVar[int]
    client: int
    step: int
    samples: int
    numbers: Tensor
    nonces: Tensor
    def __init__(self, client: _Optional[int] = ..., step: _Optional[int] = ..., samples: _Optional[int] = ..., numbers: _Optional[_Union[Tensor, _Mapping]] = ..., nonces: _Optional[_Union[Tensor, _Mapping]] = ...) -> None: ...

class Hello(_message.Message):
    __slots__ = ("name", "contract", "purpose")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CONTRACT_FIELD_NUMBER: _ClassVar[int]
    PURPOSE_FIELD_NUMBER: _ClassVar[int]
    name: str
    contract: str
    purpose: str
    def __init__(self, name: _Optional[str] = ..., contract: _Optional[str] = ..., purpose: _Optional[str] = ...) -> None: ...

class Welcome(_message.Message):
    __slots__ = ("index", "run", "turn", "side")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    TURN_FIELD_NUMBER: _ClassVar[int]
    SIDE_FIELD_NUMBER: _ClassVar[int]
    index: int
    run: str
    turn: int
    side: bytes
    def __init__(self, index: _Optional[int] = ..., run: _Optional[str] = ..., turn: _Optional[int] = ..., side: _Optional[bytes] = ...) -> None: ...

class Ready(_message.Message):
    __slots__ = ("batches",)
    BATCHES_FIELD_NUMBER: _ClassVar[int]
    batches: int
    def __init__(self, batches: _Optional[int] = ...) -> None: ...

class Grant(_message.Message):
    __slots__ = ("turn", "steps", "first_step", "done", "oldest_step", "evaluate", "run_step", "run_steps", "phase", "tested", "hand_on", "oldest_turn", "side")
    TURN_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    FIRST_STEP_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    OLDEST_STEP_FIELD_NUMBER: _ClassVar[int]
    EVALUATE_FIELD_NUMBER: _ClassVar[int]
    RUN_STEP_FIELD_NUMBER: _ClassVar[int]
    RUN_STEPS_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    TESTED_FIELD_NUMBER: _ClassVar[int]
    HAND_ON_FIELD_NUMBER: _ClassVar[int]
    OLDEST_TURN_FIELD_NUMBER: _ClassVar[int]
    SIDE_FIELD_NUMBER: _ClassVar[int]
    turn: int
    steps: int
    first_step: int
    done: int
    oldest_step: int
    evaluate: bool
    run_step: int
    run_steps: int
    phase: str
    tested: int
    hand_on: bool
    oldest_turn: int
    side: bytes
    def __init__(self, turn: _Optional[int] = ..., steps: _Optional[int] = ..., first_step: _Optional[int] = ..., done: _Optional[int] = ..., oldest_step: _Optional[int] = ..., evaluate: _Optional[bool] = ..., run_step: _Optional[int] = ..., run_steps: _Optional[int] = ..., phase: _Optional[str] = ..., tested: _Optional[int] = ..., hand_on: _Optional[bool] = ..., oldest_turn: _Optional[int] = ..., side: _Optional[bytes] = ...) -> None: ...

class TurnDone(_message.Message):
    __slots__ = ("turn", "loss", "figures", "samples", "side")
    TURN_FIELD_NUMBER: _ClassVar[int]
    LOSS_FIELD_NUMBER: _ClassVar[int]
    FIGURES_FIELD_NUMBER: _ClassVar[int]
    SAMPLES_FIELD_NUMBER: _ClassVar[int]
    SIDE_FIELD_NUMBER: _ClassVar[int]
    turn: int
    loss: float
    figures: _containers.RepeatedScalarFieldContainer[float]
    samples: int
    side: bytes
    def __init__(self, turn: _Optional[int] = ..., loss: _Optional[float] = ..., figures: _Optional[_Iterable[float]] = ..., samples: _Optional[int] = ..., side: _Optional[bytes] = ...) -> None: ...

class Finished(_message.Message):
    __slots__ = ("reason", "turn", "side")
    REASON_FIELD_NUMBER: _ClassVar[int]
    TURN_FIELD_NUMBER: _ClassVar[int]
    SIDE_FIELD_NUMBER: _ClassVar[int]
    reason: str
    turn: int
    side: bytes
    def __init__(self, reason: _Optional[str] = ..., turn: _Optional[int] = ..., side: _Optional[bytes] = ...) -> None: ...

class Heard(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Refusal(_message.Message):
    __slots__ = ("code", "text")
    CODE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    code: str
    text: str
    def __init__(self, code: _Optional[str] = ..., text: _Optional[str] = ...) -> None: ...

class Update(_message.Message):
    __slots__ = ("action", "number", "rate", "base_rate")
    ACTION_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    RATE_FIELD_NUMBER: _ClassVar[int]
    BASE_RATE_FIELD_NUMBER: _ClassVar[int]
    action: str
    number: int
    rate: float
    base_rate: float
    def __init__(self, action: _Optional[str] = ..., number: _Optional[int] = ..., rate: _Optional[float] = ..., base_rate: _Optional[float] = ...) -> None: ...

class Updated(_message.Message):
    __slots__ = ("number", "saved", "messages")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    SAVED_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    number: int
    saved: int
    messages: int
    def __init__(self, number: _Optional[int] = ..., saved: _Optional[int] = ..., messages: _Optional[int] = ...) -> None: ...

class Part(_message.Message):
    __slots__ = ("total", "index", "data")
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    total: int
    index: int
    data: bytes
    def __init__(self, total: _Optional[int] = ..., index: _Optional[int] = ..., data: _Optional[bytes] = ...) -> None: ...
