from lightsplit.results import hand_offs


def test_the_share_is_that_of_all_bytes():
    assert hand_offs.share({"hand_off": 30, "total": 40}) == 0.75
    assert hand_offs.share({}) == 0


def test_hand_offs_are_noted_only_where_they_are_most_of_the_bytes():
    assert not hand_offs.note({"hand_off": 50, "total": 100})
    assert hand_offs.note({"hand_off": 51, "total": 100}).startswith("51% of the bytes")
