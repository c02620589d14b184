"""Closer looks at a fine-tuned classifier: errors, calibration, [CLS] space, attention, and taking it along."""

from __future__ import annotations

import functools

import streamlit as st

from bert_core.figures import finetune as figures
from bert_core.load import Loaded
from bert_core.measures import classification
from bert_core.trace import Trace
from bert_core.training.live import classifier
from bert_core.training.live.tables import task_words
from ui import components, controls, notices, state
from ui.training import RunView
from ui.views import finetune_runs as runs

VIEWS = ("Errors", "Calibration", "[CLS] space", "Attention", "Loss", "Keep it")
#: Errors listed.
SHOWN_ERRORS = 40


def look_closer(run: RunView) -> None:
    """One of the closer looks, at the latest epoch."""
    which = controls.view(list(VIEWS), "look")
    frames = run.folder.frames()
    if not frames:
        return
    {"Errors": errors, "Calibration": calibration, "[CLS] space": space, "Attention": attention, "Loss": loss,
     "Keep it": keep}[which](run, frames[-1])


def errors(run: RunView, epoch: int) -> None:
    """Confusion, and the wrong answers to read, the surest first."""
    data = runs.data_of(run)
    found = run.folder.arrays(f"epoch-{epoch}")["probabilities"]
    classes = data.indices("test")
    left, right = st.columns([1, 1.4], gap="large")
    with left:
        table = classification.confusion(found, classes)
        components.chart(figures.confusion_figure(table, data.labels, components.ink()), "confusion")
    wrong = classification.mistakes(found, classes)
    with right:
        st.html(f'<p class="bw-result">{len(wrong)} of {len(classes)} test sentences got the wrong class.</p>')
        st.dataframe([{"sentence": data.test[m.index].text, "given": data.labels[m.given], "true": data.labels[m.true],
                       "how sure": round(m.probability, 3)} for m in wrong[:SHOWN_ERRORS]], hide_index=True, height=300)


def calibration(run: RunView, epoch: int) -> None:
    """Whether it is right as often as it is sure."""
    found = classification.calibration(run.folder.arrays(f"epoch-{epoch}")["probabilities"],
                                       runs.data_of(run).indices("test"))
    left, right = st.columns([1, 1.4], gap="large")
    with left:
        components.chart(figures.calibration_figure(found), "calibration")
    with right:
        st.html(f'<p class="bw-result">Expected calibration error: {100 * found.error:.1f} %. Few examples stand behind'
                " the points at the left; their number is in the table.</p>")
        st.dataframe([{"how sure": round(float(c), 3), "how often right": round(float(a), 3), "examples": int(n)}
                      for c, a, n in zip(found.confidence, found.accuracy, found.count)], hide_index=True)


def space(run: RunView, epoch: int) -> None:
    """Where the [CLS] vectors of the test set lie, before and after."""
    data = runs.data_of(run)
    columns = st.columns(2, gap="large")
    for column, number, name in ((columns[0], run.folder.frames()[0], "before"), (columns[1], epoch, "after")):
        with column:
            st.html(f'<p class="bw-result"><strong>{name.capitalize()}</strong>, epoch {number}</p>')
            vectors = run.folder.arrays(f"epoch-{number}")["cls"]
            components.chart(figures.space_figure(vectors, data.indices("test"), data.labels, data.texts("test")),
                             f"space_{name}")


def attention(run: RunView, epoch: int) -> None:
    """What [CLS] looks at in each layer for the sentence above, before and after."""
    words = task_words().get(run.spec.task, {"example": runs.data_of(run).test[0].text})
    text = st.session_state.get(f"try_{run.spec.task}") or words["example"]
    columns = st.columns(2, gap="large")
    for column, number, name in ((columns[0], run.folder.frames()[0], "before"), (columns[1], epoch, "after")):
        trace = classifier.try_sentence(runs.model_of(run, number), text)
        with column:
            st.html(f'<p class="bw-result"><strong>{name.capitalize()}</strong>: what [CLS] looks at, mean over '
                    "heads</p>")
            components.chart(figures.attention_figure(trace.attention_probs, trace.encoding.tokens), f"attend_{name}")
            with st.expander("The numbers as a table"):
                st.dataframe(attention_rows(trace), hide_index=True)


def attention_rows(trace: Trace) -> list[dict[str, float]]:
    """A row for each layer: the share of [CLS]'s attention that each token gets."""
    share = trace.attention_probs[:, :, 0, :].mean(axis=1)  # (L, Tk)
    names = [f"{n} {token}" for n, token in enumerate(trace.encoding.tokens)]
    return [{"layer": n + 1} | {name: round(float(value), 4) for name, value in zip(names, row)}
            for n, row in enumerate(share)]


def loss(run: RunView, epoch: int) -> None:
    """Training loss of each step."""
    components.chart(figures.loss_figure(run.folder.arrays("curves")["loss"]), "tune_loss")


def keep(run: RunView, epoch: int) -> None:
    """Use the classifier on the other pages, or take it away."""
    if epoch == 0:
        notices.note("Train at least one epoch before you keep it.")
        return
    name = f"mine:{run.spec.task}-{run.spec.way}-{run.id[:8]}-e{epoch}"
    first, second, _ = st.columns([1.3, 1.3, 2])
    first.button("Keep it for this visit", key="keep", icon=":material/bookmark:", width="stretch",
                 on_click=keep_model, args=(run, epoch, name))
    if second.toggle("Prepare a download", key="prepare"):
        archive = _archive(name, epoch, runs.model_of(run, epoch, name))
        second.download_button("Download the folder (.zip)", archive, f"{name.split(':')[1]}.zip", "application/zip",
                               key="download", on_click="ignore")
    if name in state.own_models():
        notices.note(f"Kept as {name}: choose it as the model on the other pages, [CLS] for one.")
    notices.note("The folder opens with transformers: AutoModelForSequenceClassification.from_pretrained(FOLDER).")


@st.cache_resource(show_spinner="Packing the folder …", max_entries=2)
def _archive(name: str, epoch: int, _model: Loaded) -> bytes:
    return classifier.to_zip(_model)


def keep_model(run: RunView, epoch: int, name: str) -> None:
    """Give the engine this classifier under a name that only this visit is told."""
    model = runs.model_of(run, epoch, name)
    state.engine().register(model)
    state.keep_own(model, again=functools.partial(runs.model_of, run, epoch, name))
