import pytest

from lightsplit.errors import ConfigError
from lightsplit.experiments import from_settings
from lightsplit.experiments.communication import foresee_traffic


@pytest.mark.slow
@pytest.mark.parametrize("objective", [None, "class-codes"])
def test_no_byte_of_a_gradient_is_counted_and_the_forecast_agrees(finished, objective):
    done = finished(codec="raw", gradients="none", objective=objective)
    counts = done.record["bytes"]
    assert counts["output_gradient"] == counts["code_gradient"] == 0
    assert counts["code"] > 0
    assert foresee_traffic(done.job.experiment).bytes == counts


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"topology": "vanilla"}, "topology must be u"),
        ({"detector": "cosine-code"}, "nothing to watch: drop cosine-code"),
        ({"inspector": "splitguard"}, "drop splitguard"),
    ],
)
def test_what_needs_gradients_is_refused(more, reason):
    with pytest.raises(ConfigError, match=reason):
        from_settings({"codec": "raw", "gradients": "none", **more})
