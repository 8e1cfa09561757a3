"""Which attacks of a record may be compared."""

from lightsplit.results import blind_guesses, ladders, main_ladder, main_leakage


def entry(attack, *, kind="oracle", images=64, targets="a", seed=0):
    return {
        "attack": attack,
        "kind": kind,
        "client": 0,
        "seed": seed,
        "targets": targets,
        "images": images,
    }


def names(ladder):
    return [one["attack"] for one in ladder]


def test_a_ladder_is_of_the_same_images_and_has_no_trivial_rung():
    entries = [
        entry("mean-image", kind="trivial"),
        entry("linear"),
        entry("linear", targets="b"),
        entry("decoder"),
        entry("label-hint", kind="labels", images=1024),
    ]
    assert [names(each) for each in ladders(entries)] == [
        ["linear", "decoder"],
        ["linear"],
    ]


def test_the_main_ladder_has_the_most_images_and_is_the_latest_of_these():
    few, many = entry("few"), entry("many", images=1000, targets="b")
    again = entry("again", images=1000, targets="b", seed=1)
    assert names(main_ladder([many, few])) == ["many"]
    assert names(main_ladder([few, many, again])) == ["again"]
    assert main_ladder([]) == []


def test_the_main_leakage_is_that_of_the_main_ladder():
    groups = [
        {"images": 1000, "metrics": {"ssim": {"mean": 0.2}}},
        {"images": 64, "metrics": {"ssim": {"mean": 0.9}}},
    ]
    assert main_leakage({"leakage": groups})["ssim"]["mean"] == 0.2
    assert main_leakage({}) == {}


def test_blind_guesses_see_no_code_and_are_on_the_images_of_the_main_ladder():
    entries = [
        entry("class-mean", kind="trivial"),
        entry("nearest-image", kind="trivial"),
        entry("mean-image", kind="trivial", targets="b"),
        entry("decoder"),
    ]
    assert names(blind_guesses(entries)) == ["class-mean"]
    assert blind_guesses(entries[:3]) == []
