"""Training and test set pooled and cut in two, as the authors of SDAR do it.

    training ─┬─► pooled ─► random order ─┬─► first half: test     an attacker's images
    test     ─┘                           └─► second half: train   the clients' images

It gives an attacker as many images as the clients have, of the same kind. There is no
test set then in the usual sense: what is called test are the attacker's images, which
nobody trains on. The order is that of scikit-learn's ``train_test_split`` with
``train_size=0.5`` and ``random_state=42``.
"""

import numpy as np
import torch

from lightsplit.data.base import Dataset, Samples

RELEASED_SEED = 42


def pooled_halves(dataset: Dataset) -> Dataset:
    """Return the dataset with half of all images to train on and half to test on."""
    pool = Samples(
        torch.cat([dataset.train.images, dataset.test.images]),
        torch.cat([dataset.train.labels, dataset.test.labels]),
    )
    # The released split is made by NumPy's old generator, which scikit-learn uses.
    order = np.random.RandomState(RELEASED_SEED).permutation(len(pool))
    held_out = (len(pool) + 1) // 2
    return Dataset(
        dataset.name,
        train=pool.subset(torch.from_numpy(order[held_out:])),
        test=pool.subset(torch.from_numpy(order[:held_out])),
        classes=dataset.classes,
    )
