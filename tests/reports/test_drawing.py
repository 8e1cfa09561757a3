from lightsplit.reports.figures.drawing import FILE_INK, legend, panels


def test_a_legend_names_each_entry_of_any_panel_once():
    figure, axes = panels(["one", "two"], FILE_INK)
    for axis, labels in zip(axes, (["raw"], ["topk", "raw"]), strict=True):
        for label in labels:
            axis.scatter(0, 0, label=label)
    legend(figure, axes[0], FILE_INK)
    (made,) = figure.legends
    assert [text.get_text() for text in made.get_texts()] == ["raw", "topk"]
