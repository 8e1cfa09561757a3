"""Libraries that only some commands need; pip installs them as extras of LightSplit.

    lightsplit[audit]          attacks on a run and their pictures
    lightsplit[prior]          searches in a generative prior for codes of bits
    lightsplit[dp]             accountants of differential privacy
    lightsplit[reports]        the report's page and figures
    lightsplit[data]           downloads of the published datasets
    lightsplit[tables]         Parquet files of an owner
    lightsplit[text]           saved Hugging Face datasets of an owner
    lightsplit[export]         models as ONNX
    lightsplit[ray]            sweeps on a Ray cluster
    lightsplit[devices]        a backbone on several accelerators
    lightsplit[he]             predictions on encrypted codes
    lightsplit[entropy]        codes of learned lengths, as in codec franken
    lightsplit[metrics]        metrics of a server for Prometheus
    lightsplit[tensorboard]    figures of a run for TensorBoard
    lightsplit[mlflow]         settings and figures of a run for MLflow

Importing a module of LightSplit imports none of these libraries. The functions that use
one ask for it here, so that an error about a missing one shows how to install it.
"""

import importlib
from importlib.util import find_spec
from types import ModuleType

from lightsplit.errors import MissingExtraError

# The extras, the modules that each brings, and the names of their projects.
EXTRAS = {
    "audit": {"sklearn": "scikit-learn", "scipy": "SciPy", "PIL": "Pillow"},
    "prior": {"nevergrad": "nevergrad"},
    "dp": {"dp_accounting": "dp-accounting", "opacus": "Opacus"},
    "reports": {
        "matplotlib": "matplotlib",
        "jinja2": "Jinja2",
        "PIL": "Pillow",
        "fpdf": "fpdf2",
    },
    "data": {"pooch": "pooch", "PIL": "Pillow"},
    "tables": {"pyarrow": "PyArrow"},
    "text": {"datasets": "datasets"},
    "export": {"onnxscript": "onnxscript", "onnxruntime": "onnxruntime"},
    "ray": {"ray": "Ray"},
    "devices": {"accelerate": "accelerate"},
    "he": {"tenseal": "TenSEAL"},
    "entropy": {"constriction": "constriction"},
    "metrics": {"prometheus_client": "prometheus-client"},
    "tensorboard": {"tensorboard": "TensorBoard"},
    "mlflow": {
        "mlflow": "mlflow-skinny",
        "sqlalchemy": "SQLAlchemy",
        "alembic": "Alembic",
    },
}


def require(module: str, *, extra: str, purpose: str = "this") -> ModuleType:
    """Return an optional module, or raise an error with the line that installs it.

    Args:
        module: the dotted name, such as ``"scipy.stats"``.
        extra: the extra that brings it.
        purpose: the subject of the error's sentence.
    """
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package:
            raise  # the library is there, but one of its own dependencies is not
        raise MissingExtraError(_sentence([package], extra, purpose)) from None


def check(extra: str, *, purpose: str = "this") -> None:
    """Raise an error unless every library of ``extra`` is installed."""
    if missing := [package for package in EXTRAS[extra] if not find_spec(package)]:
        raise MissingExtraError(_sentence(missing, extra, purpose))


def _sentence(packages: list[str], extra: str, purpose: str) -> str:
    *others, last = (EXTRAS[extra][package] for package in packages)
    projects = f"{', '.join(others)} and {last}" if others else last
    return f"{purpose} needs {projects}; pip install 'lightsplit[{extra}]'"
