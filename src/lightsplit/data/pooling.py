"""Training and test set pooled and cut in half, as the authors of SDAR do it.

    training ─┬─► pooled ─► random order ─┬─► first half: test     an attacker's images
    test     ─┘                           └─► second half: train   the clients' images

This gives an attacker as many images as the clients have, of the same kind. There is
then no test set in the usual sense: the "test" images are the attacker's, and nobody
trains on them. The order is that of scikit-learn's ``train_test_split`` with
``train_size=0.5`` and ``random_state=42``.
"""

import numpy as np
import torch

from lightsplit.data.base import Dataset, Samples
from lightsplit.errors import ConfigError

RELEASED_SEED = 42


def pooled_halves(dataset: Dataset) -> Dataset:
    """Return the dataset with half of all images for training and half for testing."""
    train, test = dataset.train, dataset.test
    if not (isinstance(train, Samples) and isinstance(test, Samples)):
        raise ConfigError(
            f"data_split pooled-halves needs a built-in dataset, got {dataset.name}: "
            "leave data_split out"
        )
    pool = Samples(
        torch.cat([train.images, test.images]), torch.cat([train.labels, test.labels])
    )
    # The released code splits with scikit-learn, which uses NumPy's legacy generator.
    order = np.random.RandomState(RELEASED_SEED).permutation(len(pool))
    held_out = (len(pool) + 1) // 2
    return Dataset(
        dataset.name,
        train=pool.subset(torch.from_numpy(order[held_out:])),
        test=pool.subset(torch.from_numpy(order[:held_out])),
        classes=dataset.classes,
    )
