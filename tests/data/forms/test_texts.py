import pytest

from lightsplit.data import TextForm
from lightsplit.errors import DataError, MissingDataError


def letters(text):
    return {"input_ids": [ord(one) for one in text], "attention_mask": [1] * len(text)}


FORM = TextForm(("bad", "good"), letters, max_tokens=4, padding=9)


@pytest.fixture
def table(tmp_path):
    def write(*rows, suffix=".tsv"):
        file = tmp_path / f"data{suffix}"
        file.write_text("\n".join(["text\tlabel", *rows]) + "\n")
        return file

    return write


def test_texts_are_padded(table):
    inputs, label = FORM.file(table("ab\tgood"))[0]
    assert inputs["input_ids"].tolist() == [97, 98, 9, 9]
    assert inputs["attention_mask"].tolist() == [1, 1, 0, 0]
    assert label == 1


def test_a_long_text_is_refused_before_it_is_asked_for(table):
    with pytest.raises(
        DataError, match=r"line 3: the text has 5 tokens, more than.* 4"
    ):
        FORM.file(table("ab\tgood", "abcde\tbad"))


def test_a_long_text_can_be_cut(table):
    form = TextForm(("bad", "good"), letters, max_tokens=4, truncate=True)
    inputs, _ = form.file(table("abcde\tbad"))[0]
    assert inputs["input_ids"].tolist() == [97, 98, 99, 100]


def test_quotes_in_tsv_are_letters(table):
    assert FORM.file(table('"a\tbad'))[0][0]["input_ids"][0] == ord('"')


def test_a_tokenizer_without_ids_is_refused(table):
    form = TextForm(("bad", "good"), lambda text: {"ids": [1]}, max_tokens=4)
    with pytest.raises(DataError, match="gives no 'input_ids', only ids"):
        form.file(table("ab\tgood"))


def test_a_saved_dataset_gives_the_same(table, tmp_path):
    datasets = pytest.importorskip("datasets")
    saved = tmp_path / "saved"
    rows = {"text": ["ab", "cd"], "label": [1, 0]}
    datasets.Dataset.from_dict(rows).save_to_disk(str(saved))
    here, there = FORM.saved(saved), FORM.file(table("ab\tgood", "cd\tbad"))
    assert here.targets.tolist() == there.targets.tolist() == [1, 0]
    assert here[0][0]["input_ids"].tolist() == there[0][0]["input_ids"].tolist()
    with pytest.raises(DataError, match="no column 'sentence'"):
        FORM.saved(saved, text="sentence")


def test_a_folder_that_is_no_saved_dataset_is_refused(tmp_path):
    pytest.importorskip("datasets")
    with pytest.raises(DataError, match="not a saved dataset"):
        FORM.saved(tmp_path)
    with pytest.raises(MissingDataError):
        FORM.saved(tmp_path / "nowhere")


def test_classes_of_a_saved_dataset_go_by_their_names(tmp_path):
    """Its class 0 may be the task's class 1."""
    datasets = pytest.importorskip("datasets")
    names = datasets.ClassLabel(names=["good", "bad"])
    features = datasets.Features({"text": datasets.Value("string"), "label": names})
    rows = {"text": ["ab", "cd"], "label": [0, 1]}
    saved = datasets.Dataset.from_dict(rows, features=features)
    saved.save_to_disk(str(tmp_path / "one"))
    assert FORM.saved(tmp_path / "one").targets.tolist() == [1, 0]
    datasets.DatasetDict({"train": saved}).save_to_disk(str(tmp_path / "several"))
    with pytest.raises(DataError, match=r"several datasets, train; give the folder"):
        FORM.saved(tmp_path / "several")
    assert len(FORM.saved(tmp_path / "several" / "train")) == 2


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"text": "ab", "label": 2}, "row 0: the class '2' is not one"),
        ({"text": None, "label": 0}, "row 0: expected a text, got None"),
    ],
)
def test_rows_of_a_saved_dataset_that_do_not_fit_are_named(tmp_path, row, reason):
    datasets = pytest.importorskip("datasets")
    datasets.Dataset.from_list([row]).save_to_disk(str(tmp_path))
    with pytest.raises(DataError, match=reason):
        FORM.saved(tmp_path)


def test_texts_without_classes_can_be_read(tmp_path, table):
    (tmp_path / "new.csv").write_text("text\nab\nabcd\n")
    new = FORM.unlabelled(tmp_path / "new.csv")
    assert new[0]["input_ids"].tolist() == [97, 98, 9, 9]
    (tmp_path / "new.csv").write_text("text\nabcde\n")
    with pytest.raises(DataError, match="line 2: the text has 5 tokens"):
        FORM.unlabelled(tmp_path / "new.csv")
