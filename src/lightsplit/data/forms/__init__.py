"""An owner's files as samples, each kind declared by a form.

    ImageForm    a folder per class, or a CSV with file names and labels
    MaskForm     images with a mask of the same name
    TableForm    CSV or Parquet: numbers, categories, missing values
    ArrayForm    NPZ archives
    TextForm     CSV or TSV with a text and a label, or a saved Hugging Face dataset

A form holds what all owners must agree on: classes, columns, sizes, normalisation. The
task names it, and its terms are compared in the contract. Files that do not fit it are
refused at the owner, before anything is sent.
"""

from lightsplit.data.forms.arrays import ArrayForm
from lightsplit.data.forms.base import Form, hold_out
from lightsplit.data.forms.images import ImageForm
from lightsplit.data.forms.masks import MaskForm
from lightsplit.data.forms.tables import TableForm
from lightsplit.data.forms.texts import TextForm

__all__ = [
    "ArrayForm",
    "Form",
    "ImageForm",
    "MaskForm",
    "TableForm",
    "TextForm",
    "hold_out",
]
