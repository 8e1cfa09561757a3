import pytest

from lightsplit.advice import Limits, advise

BITS = "lightsplit-b:bits=12"
RAW = ("raw", 0.9, 0.9, 1.0)


def test_the_best_setting_within_the_limits_is_advised_with_its_cost(candidates, run):
    found = candidates(
        run(*RAW), run("none", 0.8), run(BITS, 0.89, 0.44, 0.03), run("topk", 0.7, 1, 1)
    )
    advice = advise(found, Limits())
    assert advice.chosen.point.group.settings["codec"] == "lightsplit-b"
    said = " ".join(advice.sentences)
    for words in (
        "Use lightsplit-b 12 bits at cut l2.",
        "accuracy 89.00 %, 1.00 points below raw, 9.00 points above what the clients",
        "names 3.0% of the images and gets +0.040 SSIM over the class mean",
        "can name more than 10.0%",
        "costs 10 bytes a sample and the client 1,000 FLOPs",
        "One seed",
    ):
        assert words in said


def test_without_a_better_setting_the_advice_is_to_send_nothing(candidates, run):
    found = candidates(run(*RAW), run("none", 0.89), run(BITS, 0.89, 0.44, 0.03))
    advice = advise(found, Limits())
    assert advice.chosen.point.is_alone
    assert "does better. The best is lightsplit-b 12 bits" in advice.sentences[1]
    assert "worth nothing" not in " ".join(advice.sentences)


def test_a_server_that_is_worth_nothing_is_called_that(candidates, run):
    found = candidates(run(*RAW), run("none", 0.95), run(BITS, 0.89, 0.9, 0.9))
    said = " ".join(advise(found, Limits()).sentences)
    assert "No setting with a server meets the limits." in said
    assert "the server is worth nothing" in said


def test_limits_that_nothing_meets_are_answered_with_the_nearest(candidates, run):
    found = candidates(run(*RAW), run(BITS, 0.89, 0.5, 0.06))
    advice = advise(found, Limits())
    assert advice.chosen is None
    assert advice.sentences[0] == "No setting of this search meets the limits."
    assert "The nearest is lightsplit-b 12 bits at cut l2: 6.0%" in advice.sentences[1]
    assert "A guess that sees no code" not in " ".join(advice.sentences)


def test_a_limit_below_a_blind_guess_is_told(candidates, run):
    found = candidates(run(*RAW), run(BITS, 0.89, 0.5, 0.06))
    said = " ".join(advise(found, Limits(reidentification=0.01)).sentences)
    assert "A guess that sees no code already names 2.0% of the images" in said


def test_figures_are_means_over_seeds_and_then_need_no_caution(candidates, run):
    runs = [run(BITS, a, 0.44, 0.03, seed=s) for s, a in enumerate((0.8, 0.9))]
    advice = advise(candidates(*runs), Limits())
    assert advice.chosen.point.value == pytest.approx(0.85)
    assert len(advice.candidates) == 1
    assert "One seed" not in " ".join(advice.sentences)


def test_of_equal_settings_the_one_that_leaks_less_is_advised(candidates, run):
    found = candidates(
        run("lightsplit-b:bits=16", 0.9, 0.44, 0.04), run(BITS, 0.9, 0.44, 0.03)
    )
    assert advise(found, Limits()).chosen.point.group.settings["bits"] == 12


def test_where_less_is_better_the_least_loss_is_advised(candidates, run):
    monitor = {"name": "loss", "is_higher_better": False}
    runs = [run("raw", 0, 0.4, 0.0), run(BITS, 0, 0.4, 0.0)]
    for each, loss in zip(runs, (2.0, 1.0), strict=True):
        each.record.update(monitor=monitor, test_loss=loss)
    advice = advise(candidates(*runs), Limits())
    assert advice.chosen.point.group.settings["codec"] == "lightsplit-b"
    assert "loss 1, 1 above raw" in advice.sentences[1]
