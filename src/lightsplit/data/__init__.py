"""Datasets, their partition among clients, and the batches of a client.

DATASETS.create("cifar10", data_dir=…) ──► Dataset(train, test)
partition(train.labels, clients, …)    ──► indices per client
Batches(train, indices, batch_size, …) ──► (images, labels) of any step
"""

from lightsplit.data import cifar, digits, gtsrb, idx  # noqa: F401 (registers them)
from lightsplit.data.augmentation import AUGMENTATIONS, Augmentation
from lightsplit.data.base import DATASETS, Dataset, Samples, SampleSet
from lightsplit.data.batches import Batches, StepBatches
from lightsplit.data.folder import data_folder
from lightsplit.data.forms import (
    ArrayForm,
    Form,
    ImageForm,
    MaskForm,
    TableForm,
    TextForm,
    hold_out,
)
from lightsplit.data.loader import LoaderBatches
from lightsplit.data.own import OwnSamples, as_dataset
from lightsplit.data.partition import label_histogram, partition
from lightsplit.data.pooling import pooled_halves
from lightsplit.data.shifted_labels import ShiftedLabels

__all__ = [
    "AUGMENTATIONS",
    "DATASETS",
    "ArrayForm",
    "Augmentation",
    "Batches",
    "Dataset",
    "Form",
    "ImageForm",
    "LoaderBatches",
    "MaskForm",
    "OwnSamples",
    "SampleSet",
    "Samples",
    "ShiftedLabels",
    "StepBatches",
    "TableForm",
    "TextForm",
    "as_dataset",
    "data_folder",
    "hold_out",
    "label_histogram",
    "partition",
    "pooled_halves",
]
