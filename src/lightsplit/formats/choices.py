"""One name for all four messages of a step, or one for each of them.

"int8"                       all four
"code=int8,output=bf16"      these two; the default for the others
"""

from collections.abc import Mapping
from typing import Any

from lightsplit.errors import ConfigError
from lightsplit.registry import Registry, unknown_name

STEP_KINDS = ("code", "output", "output_gradient", "code_gradient")
Choices = dict[str, str]


def parse_choices(
    text: str, registry: Registry[Any], default: Mapping[str, str]
) -> Choices:
    """Return the name that ``text`` chooses for each of the four messages.

    Example:
        >>> from lightsplit.formats import FORMATS
        >>> every = dict.fromkeys(STEP_KINDS, "fp32")
        >>> parse_choices("code=int8", FORMATS, every)["code"]
        'int8'
    """
    words = [word.strip() for word in text.split(",") if word.strip()]
    if len(words) == 1 and "=" not in words[0]:
        registry.get(words[0])
        return dict.fromkeys(STEP_KINDS, words[0])
    pairs = [_pair(word, registry) for word in words]
    chosen = dict(pairs)
    if len(chosen) < len(pairs):
        raise ConfigError(f"a message is named twice in {text!r}")
    return {kind: chosen.get(kind, default[kind]) for kind in STEP_KINDS}


def choice_text(choices: Mapping[str, str]) -> str:
    """Return the shortest text of ``choices``: one name if all four are the same."""
    words = {choices[kind] for kind in STEP_KINDS}
    if len(words) == 1:
        return words.pop()
    return ",".join(f"{kind}={choices[kind]}" for kind in STEP_KINDS)


def _pair(word: str, registry: Registry[Any]) -> tuple[str, str]:
    kind, equals, name = (part.strip() for part in word.partition("="))
    if not equals:
        raise ConfigError(
            f"expected one {registry.kind} or message=name pairs, got {word!r}"
        )
    if kind not in STEP_KINDS:
        raise ConfigError(unknown_name("message", kind, list(STEP_KINDS)))
    registry.get(name)
    return kind, name
