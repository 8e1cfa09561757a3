"""Datasets, who holds which part of them, and the batches of a client.

DATASETS.create("cifar10", data_dir=…) ──► Dataset(train, test)
partition(train.labels, clients, …)    ──► indices per client
Batches(train, indices, batch_size, …) ──► (images, labels) of any step
"""

from lightsplit.data import cifar, digits, gtsrb, idx  # noqa: F401 (registers them)
from lightsplit.data.base import DATASETS, Dataset, Samples
from lightsplit.data.batches import Batches, StepBatches
from lightsplit.data.folder import data_folder
from lightsplit.data.loader import LoaderBatches
from lightsplit.data.partition import label_histogram, partition
from lightsplit.data.pooling import pooled_halves

__all__ = [
    "DATASETS",
    "Batches",
    "Dataset",
    "LoaderBatches",
    "Samples",
    "StepBatches",
    "data_folder",
    "label_histogram",
    "partition",
    "pooled_halves",
]
