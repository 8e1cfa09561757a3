"""Metrics of how close a reconstruction is to its original image.

evaluate(reconstructions, originals) ──► values per image ──► Scores ──► summaries

Importing this package registers every metric in ``METRICS``.
"""

from lightsplit.metrics.base import METRICS, Metric
from lightsplit.metrics.evaluation import evaluate
from lightsplit.metrics.foreground import (
    cropped_perceptual_similarity,
    cropped_structural_similarity,
    foreground,
    foreground_mean_squared_error,
    foreground_peak_signal_noise_ratio,
)
from lightsplit.metrics.lpips import learned_perceptual_similarity
from lightsplit.metrics.pixels import (
    correlation,
    mean_squared_error,
    peak_signal_noise_ratio,
    scaled_mean_squared_error,
)
from lightsplit.metrics.reidentification import reidentification
from lightsplit.metrics.rows import (
    column_r2,
    explained_variance,
    row_mean_squared_error,
)
from lightsplit.metrics.scores import Scores, Summary, summarise, wilson_interval
from lightsplit.metrics.ssim import structural_similarity
from lightsplit.metrics.tokens import (
    text_reidentification,
    token_accuracy,
    token_f1,
)

__all__ = [
    "METRICS",
    "Metric",
    "Scores",
    "Summary",
    "column_r2",
    "correlation",
    "cropped_perceptual_similarity",
    "cropped_structural_similarity",
    "evaluate",
    "explained_variance",
    "foreground",
    "foreground_mean_squared_error",
    "foreground_peak_signal_noise_ratio",
    "learned_perceptual_similarity",
    "mean_squared_error",
    "peak_signal_noise_ratio",
    "reidentification",
    "row_mean_squared_error",
    "scaled_mean_squared_error",
    "structural_similarity",
    "summarise",
    "text_reidentification",
    "token_accuracy",
    "token_f1",
    "wilson_interval",
]
