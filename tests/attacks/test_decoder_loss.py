"""The loss of a decoder agrees with scikit-image's SSIM."""

import numpy as np
import torch
from skimage.metrics import structural_similarity

from lightsplit.attacks.decoder_loss import decoder_loss, similarity


def test_the_similarity_is_that_of_flat_windows():
    ours, theirs = torch.rand(2, 1, 1, 20, 24).unbind()
    _, everywhere = structural_similarity(
        ours[0, 0].double().numpy(),
        theirs[0, 0].double().numpy(),
        data_range=1.0,
        win_size=7,
        use_sample_covariance=False,
        full=True,
    )
    inside = everywhere[3:-3, 3:-3]
    np.testing.assert_allclose(
        float(similarity(ours, theirs)), inside.mean(), atol=1e-4
    )


def test_it_is_zero_for_the_truth_and_nowhere_less():
    truth = torch.rand(3, 2, 5, 9)
    assert abs(float(decoder_loss(truth, truth))) < 1e-6
    assert decoder_loss(torch.rand_like(truth), truth) > 0
