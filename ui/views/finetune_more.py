"""Closer looks at a fine-tuned classifier: errors, calibration, [CLS] space, attention, and taking it along."""

from __future__ import annotations

import functools

import streamlit as st

from bert_core.figures import finetune as figures
from bert_core.measures import classification
from bert_core.trace import Trace
from bert_core.training.live import classifier
from ui import components, controls, notices, state, tables
from ui.tables import Numbers
from ui.training import RunView
from ui.views import finetune_runs as runs
from ui.views import task_models

VIEWS = ("Errors", "Calibration", "[CLS] space", "Attention", "Loss", "Keep it")
#: Errors listed.
SHOWN_ERRORS = 40


def look_closer(run: RunView, epoch: int) -> None:
    """One of the closer looks, at the epoch that is chosen."""
    which = controls.view(list(VIEWS), "look")
    if not run.folder.frames():
        return
    {"Errors": errors, "Calibration": calibration, "[CLS] space": space, "Attention": attention, "Loss": loss,
     "Keep it": keep}[which](run, epoch)


def errors(run: RunView, epoch: int) -> None:
    """Confusion, and the wrong answers to read, the surest first."""
    data = runs.data_of(run)
    found = run.folder.arrays(f"epoch-{epoch}")["probabilities"]
    classes = data.indices("test")
    left, right = st.columns([1, 1.4], gap="large")
    with left:
        components.shared_chart(
            lambda: figures.confusion_figure(classification.confusion(found, classes), data.labels, components.ink()),
            (str(run.folder.path), epoch), "confusion", "True and given classes of the test sentences")
    wrong = classification.mistakes(found, classes)
    with right:
        st.html(f'<p class="bw-result">{len(wrong)} of {len(classes)} test sentences got the wrong class '
                f"after epoch {epoch}.</p>")
        rows = [(data.test[m.index].text, data.labels[m.given], data.labels[m.true], task_models.share(m.probability))
                for m in wrong[:SHOWN_ERRORS]]
        if rows:
            with st.container(height=320, border=False):
                st.html(tables.table("Wrong answers, the surest first", ("sentence", "given", "true", "how sure"), rows,
                                     numbers=(3,), stacked=True))


def calibration(run: RunView, epoch: int) -> None:
    """Whether it is right as often as it is sure."""
    found = classification.calibration(run.folder.arrays(f"epoch-{epoch}")["probabilities"],
                                       runs.data_of(run).indices("test"))
    left, right = st.columns([1, 1.4], gap="large")
    with left:
        components.chart(figures.calibration_figure(found), "calibration", "How often it is right by how sure it is")
    with right:
        st.html(f'<p class="bw-result">Expected calibration error after epoch {epoch}: {100 * found.error:.1f} %. '
                "A small point has few examples behind it; their number is in the table.</p>")
        st.html(tables.table("How sure, how often right", ("how sure", "how often right", "examples"),
                             [(f"{100 * c:.1f} %", f"{100 * a:.1f} %", str(n)) for c, a, n in zip(*found[:3])],
                             numbers=(0, 1, 2)))


def space(run: RunView, epoch: int) -> None:
    """Where the [CLS] vectors of the test set lie, before and after."""
    say_unmoved(run)
    data = runs.data_of(run)
    columns = st.columns(2, gap="large")
    for column, number, name in ((columns[0], run.folder.frames()[0], "before"), (columns[1], epoch, "after")):
        with column:
            st.html(f'<p class="bw-result"><strong>{name.capitalize()}</strong>, epoch {number}</p>')
            vectors = run.folder.arrays(f"epoch-{number}")["cls"]
            classes, texts = data.indices("test"), data.texts("test")
            components.chart(
                figures.space_figure(vectors, classes, data.labels, texts), f"space_{name}",
                Numbers(f"[CLS] of the test set, epoch {number}", ("sentence", "class", "main axis 1", "main axis 2"),
                        [(text, data.labels[label], *place)
                         for text, label, place in zip(texts, classes, figures.main_axes(vectors).tolist())]))


def say_unmoved(run: RunView) -> None:
    """A line above two pictures that can't differ."""
    if run.spec.way == "frozen":
        notices.note("Only the head learned here. The encoder is as it was, so before and after are the same.")


def attention(run: RunView, epoch: int) -> None:
    """What [CLS] looks at in each layer for the sentence above, before and after."""
    say_unmoved(run)
    text = st.session_state.get(runs.sentence_key(run)) or runs.example(run)
    columns = st.columns(2, gap="large")
    for column, number, name in ((columns[0], run.folder.frames()[0], "before"), (columns[1], epoch, "after")):
        trace = classifier.try_sentence(runs.model_of(run, number), text)
        with column:
            st.html(f'<p class="bw-result"><strong>{name.capitalize()}</strong>: what [CLS] looks at, mean over '
                    "heads</p>")
            components.chart(figures.attention_figure(trace.attention_probs, trace.encoding.tokens), f"attend_{name}",
                             attention_numbers(trace, number))


def attention_numbers(trace: Trace, epoch: int) -> Numbers:
    """A row for each layer: the share of [CLS]'s attention that each token gets."""
    share = trace.attention_probs[:, :, 0, :].mean(axis=1)  # (L, Tk)
    names = [f"{n} {token}" for n, token in enumerate(trace.encoding.tokens)]
    return Numbers(f"What [CLS] looks at, mean over heads, epoch {epoch}", ("layer", *names),
                   [(n + 1, *row) for n, row in enumerate(share.tolist())])


def loss(run: RunView, epoch: int) -> None:
    """Training loss of each step."""
    values = run.folder.arrays("curves")["loss"]
    components.chart(figures.loss_figure(values), "tune_loss", Numbers(
        "Training loss of each step", ("optimiser step", "loss (nats)"), list(enumerate(values.tolist(), 1))))


def keep(run: RunView, epoch: int) -> None:
    """Use the classifier on the other pages, or take it away."""
    if epoch == 0:
        notices.note("Train at least one epoch before you keep it.")
        return
    name = f"{state.MADE}{run.spec.task}-{run.spec.way}-{run.id[:8]}-e{epoch}"
    first, second, _ = st.columns([1.3, 1.3, 2])
    first.button("Keep it for this visit", key="keep", icon=":material/bookmark:", width="stretch",
                 on_click=keep_model, args=(run, epoch, name))
    if second.toggle("Prepare a download", key="prepare"):
        make = runs.zip_later(run, epoch, name)
        second.download_button("Download the folder (.zip)", make, f"{name.split(':')[1]}.zip", "application/zip",
                               key="download", on_click="ignore")
    if name in state.own_models():
        notices.note(f"Kept as {name}: choose it as the model on the other pages, for example [CLS]. A class "
                     "that follows you then has it too.")
    notices.note("The folder opens with transformers: AutoModelForSequenceClassification.from_pretrained(FOLDER).")


def keep_model(run: RunView, epoch: int, name: str) -> None:
    """Give the engine this classifier under a name that only this visit is told."""
    model = runs.model_of(run, epoch, name)
    state.engine().register(model)
    state.keep_own(model, again=functools.partial(runs.model_of, run, epoch, name))
