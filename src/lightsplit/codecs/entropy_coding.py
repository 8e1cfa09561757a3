"""Whole numbers as bytes, at the length that their frequencies say (range coding).

    table     (C, 2R + 1) whole frequencies: how often channel c has the level −R … R
    symbols   (B, C, n) ──► words of each sample (B,), bytes of all samples (m,)

Frequent numbers take less than a bit, rare ones up to 16. Each sample is a stream of
its own, in words of 32 bits, so a stream ends up to a word later than its content. Both
ends need the same table; it is of whole numbers, so that no rounding can tell them
apart.
"""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lightsplit.errors import CodecError, ConfigError
from lightsplit.extras import require

TOTAL = 2**16  # the frequencies of a channel add up to this
_WORD_BYTES = 4
_MOST_WORDS = 2**15 - 1  # what an int16 tells


class EntropyCoder:
    """Writes and reads samples of whole numbers from −R to R.

    Args:
        table: of frequencies, in int32.
        count: numbers of a sample in each channel.
    """

    def __init__(self, table: Tensor, count: int) -> None:
        _check_table(table)
        _library()  # a missing one is said here, before a run
        self._shares = table.double().numpy() / TOTAL
        self._count = count
        self.reach = table.shape[1] // 2
        symbols = len(table) * count
        self.most_words = math.ceil(symbols * math.log2(TOTAL) / 32) + 2
        if self.most_words > _MOST_WORDS:
            raise ConfigError(
                f"a sample of {symbols:,} entropy-coded numbers may take "
                f"{self.most_words:,} words, at most {_MOST_WORDS:,} can be sent"
            )

    def write(self, symbols: Tensor) -> tuple[Tensor, Tensor]:
        """Return the words of each sample, and the bytes of all, for (B, C, n)."""
        levels = (symbols.detach().cpu() + self.reach).to(torch.int32).numpy()
        models = self._models()
        streams = [_written(sample, models) for sample in levels]
        words = torch.tensor([len(stream) for stream in streams], dtype=torch.int16)
        joined = np.concatenate(streams).astype("<u4").view(np.uint8)
        return words.to(symbols.device), torch.from_numpy(joined).to(symbols.device)

    def read(self, words: Tensor, written: Tensor) -> Tensor:
        """Return the numbers (B, C, n) in float32; refuse bytes that nobody wrote."""
        lengths, data = words.cpu().tolist(), written.cpu().numpy()
        if min(lengths) < 1 or _WORD_BYTES * sum(lengths) != len(data):
            raise CodecError(
                f"expected {len(lengths)} streams of words that add up to the bytes, "
                f"got {_WORD_BYTES * sum(lengths)} bytes announced and {len(data)} sent"
            )
        streams = np.split(
            data.view("<u4").astype(np.uint32), np.cumsum(lengths)[:-1].tolist()
        )
        models = self._models()
        levels = np.stack([_read(stream, models, self._count) for stream in streams])
        return torch.from_numpy(levels).to(words.device, torch.float32) - self.reach

    def _models(self) -> list[Any]:
        """Return the library's form of each channel's frequencies."""
        make = _library().model.Categorical
        return [make(shares, perfect=False) for shares in self._shares]


def whole_frequencies(shares: Tensor) -> Tensor:
    """Return a table for shares (C, levels) that add up to about 1, each at least 1.

    Example:
        >>> whole_frequencies(torch.tensor([[0.25, 0.5, 0.25]]))
        tensor([[16384, 32768, 16384]], dtype=torch.int32)
    """
    shares = shares.detach().double()
    shares = shares / shares.sum(dim=1, keepdim=True)
    spare = TOTAL - shares.shape[1]
    table = (shares * spare).floor().int() + 1
    rest = TOTAL - table.sum(dim=1)
    table[torch.arange(len(table)), table.argmax(dim=1)] += rest.int()
    return table


def _check_table(table: Tensor) -> None:
    is_table = table.ndim == 2 and table.shape[1] % 2 and table.dtype == torch.int32
    if not is_table or int(table.min()) < 1 or bool((table.sum(dim=1) != TOTAL).any()):
        raise CodecError(
            f"expected frequencies of an odd number of levels, each at least 1, that "
            f"add up to {TOTAL} in each channel"
        )


def _library() -> Any:
    return require("constriction", extra="entropy", purpose="entropy coding").stream


def _written(sample: "np.ndarray[Any, np.dtype[np.int32]]", models: list[Any]) -> Any:
    encoder = _library().queue.RangeEncoder()
    for channel, model in zip(sample, models, strict=True):
        encoder.encode(np.ascontiguousarray(channel), model)
    return encoder.get_compressed()


def _read(
    stream: "np.ndarray[Any, np.dtype[np.uint32]]", models: list[Any], count: int
) -> Any:
    decoder = _library().queue.RangeDecoder(stream)
    try:
        levels = [decoder.decode(model, count) for model in models]
    except AssertionError as error:  # how the library refuses a stream
        raise CodecError(f"not an entropy-coded sample: {error}") from error
    if not decoder.maybe_exhausted():
        raise CodecError("an entropy-coded sample has bytes after its end")
    return np.stack(levels)
