import inspect

import pytest

from lightsplit import errors

ALL = [cls for _, cls in inspect.getmembers(errors, inspect.isclass)]


@pytest.mark.parametrize("error", ALL)
def test_every_error_is_a_lightsplit_error_and_is_in_the_docstrings_tree(error):
    assert issubclass(error, errors.LightSplitError)
    assert error.__name__ in errors.__doc__
    assert error.__doc__


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (errors.ConfigError, ValueError),
        (errors.UnknownNameError, ValueError),
        (errors.SplitError, ValueError),
        (errors.CodecError, ValueError),
        (errors.MissingDataError, FileNotFoundError),
        (errors.MissingExtraError, ImportError),
    ],
)
def test_a_caller_may_catch_the_builtin_that_it_expects(error, builtin):
    assert issubclass(error, builtin)
