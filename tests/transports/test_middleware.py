from lightsplit.transports import through


def named(name, seen):
    def mod(request, call_next):
        seen.append(name)
        return call_next(request)

    return mod


def test_without_a_change_the_reply_is_the_servers():
    assert through(named("a", []), lambda request: request + 1)(1) == 2


def test_the_mod_that_was_put_on_last_sees_the_request_first():
    seen = []
    send = through(named("inner", seen), lambda request: request)
    through(named("outer", seen), send)(0)
    assert seen == ["outer", "inner"]


def test_a_mod_may_alter_request_and_reply_or_answer_itself():
    double = through(lambda request, send: 2 * send(request + 1), lambda r: r)
    assert double(1) == 4
    assert through(lambda _request, _send: "no", double)(1) == "no"
