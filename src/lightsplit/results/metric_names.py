"""The metrics of reconstructions that a table shows, in its order."""

from collections.abc import Iterable

FIRST = (
    "ssim",
    "lpips",
    "mse",
    "psnr",
    "correlation",
    "r2",
    "row_mse",
    "token_accuracy",
    "token_f1",
    "reidentification",
    "text_reidentification",
)
VARIANTS = (  # of those, for a part of an image or another scale; they stay in records
    "mse_foreground",
    "psnr_foreground",
    "ssim_crop",
    "lpips_crop",
    "scaled_mse",
)


def shown_metrics(names: Iterable[str]) -> list[str]:
    """Return the usual metrics in their order, then those of plug-ins.

    Example:
        >>> shown_metrics(["sharpness", "mse", "scaled_mse", "ssim"])
        ['ssim', 'mse', 'sharpness']
    """
    known = dict.fromkeys(names)
    usual = [name for name in FIRST if name in known]
    return usual + [name for name in known if name not in (*FIRST, *VARIANTS)]
