"""What is on screen as a Python file that reproduces its numbers.

Two forms: line by line in plain PyTorch, which needs bert_core only to read the
weights and the vocabulary, and short, through the engine. Both print
`screen_numbers`, a line each. The longer one is put together from parts, so
that it has only what this model and this input need.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from bert_core.load import Loaded
from bert_core.measures.predictions import piece
from bert_core.measures.similarity import cosine_to, sentence_vector
from bert_core.tasks.answers import MAX_ANSWER, Window, answer_probabilities, best_answers
from bert_core.tasks.entities import label_tokens
from bert_core.tasks.sentences import class_names, label_names, read_logits, several_hold
from bert_core.tasks.support import HEADS, softmax
from bert_core.tasks.vocabulary import last_place, last_read
from bert_core.tokenizer import Encoding
from bert_core.trace import Trace, TraceRequest

#: Guesses shown for each gap, and decimals of every number.
TOP, DECIMALS = 5, 4
#: Parts of a Trace that `screen_numbers` reads.
PARTS = ("embedding_output", "hidden_states", "mlm_positions", "mlm_logits", "nsp_logits", "lm_logits", "logits",
         "start_logits", "end_logits")


def screen_numbers(trace: Trace, loaded: Loaded, alone: Sequence[Trace] = ()) -> dict[str, Any]:
    """The numbers that page and script show of one run.

    Args:
        alone: what `alone_requests` asks for, run.

    Returns:
        'tokens'; 'embeddings' and 'layer 1' to 'layer L', the first three
        numbers of [CLS] there; then what the model's heads say. A masked-LM
        head: 'position N' of each gap, word -> probability. A causal model:
        'next'. A next-sentence head, of a pair: 'is next'. A classifier:
        'labels', name -> probability, or 'numbers' of a regression. Token
        labels: 'position N' of each token, with its own best label and that
        one's probability. Question answering, of a pair: 'start' and 'end' of
        the best answer, position, token and probability. No head, of a pair:
        'cosine' of the two sentences.
    """
    numbers: dict[str, Any] = {"tokens": [str(token) for token in trace.tokens]}
    for index, hidden in enumerate(trace.hidden_states):
        numbers["embeddings" if index == 0 else f"layer {index}"] = _rounded(hidden[0, :3])
    if trace.has("mlm_logits"):
        for position, logits in zip(trace.mlm_positions, trace.mlm_logits, strict=True):
            numbers[f"position {position}"] = _best(logits, loaded)
    if trace.has("lm_logits"):
        numbers["next"] = _best(trace.lm_row(last_read(trace)), loaded)
    if trace.has("nsp_logits") and trace.request.pair is not None:
        numbers["is next"] = _rounded(softmax(trace.nsp_logits)[:1])[0]
    if trace.has("logits"):
        numbers |= _classes(trace) if "classification" in loaded.model.heads else _token_labels(trace)
    if trace.has("start_logits"):
        numbers |= _answer(trace)
    if alone:
        numbers["cosine"] = _rounded([cosine_to(*(sentence_vector(one, "mean") for one in alone))])[0]
    return numbers


def screen_text(numbers: dict[str, Any]) -> str:
    """One line a number, as page and script print them."""
    return "\n".join(f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in numbers.items())


def alone_requests(request: TraceRequest, loaded: Loaded) -> tuple[TraceRequest, ...]:
    """Each sentence of a pair by itself, for their cosine; empty unless that is what this model is for.

    A model without a head is read for its sentence vectors. What a request
    changes at positions of the pair can't be asked of one sentence: no cosine.
    """
    if loaded.model.heads & HEADS.keys() or request.pair is None or request.masked or request != _plain(request):
        return ()
    texts = (request.text, request.pair)
    if not all(loaded.tokenizer.encode(text).content for text in texts):
        return ()
    return tuple(TraceRequest(text, None, request.attention, request.model, parts=("hidden_states",)) for text in texts)


def _best(logits: np.ndarray, loaded: Loaded) -> dict[str, float]:
    probabilities = softmax(logits)
    best = np.argsort(-probabilities, kind="stable")[:TOP]
    return {piece(loaded.tokenizer, i): p for i, p in zip(best, _rounded(probabilities[best]), strict=True)}


def _classes(trace: Trace) -> dict[str, dict[str, float]]:
    """A sequence classifier's answer."""
    found = read_logits(trace.config, trace.logits)
    shown = dict(zip(found.values, _rounded(found.values.values()), strict=True))
    return {"labels" if found.probabilities else "numbers": shown}


def _token_labels(trace: Trace) -> dict[str, list[Any]]:
    """Each token's own best label, before they are joined to words or decoded as a sequence."""
    found = label_tokens(trace.encoding, softmax(trace.logits), label_names(trace.config, trace.logits.shape[-1]))
    return {f"position {place}": [token.token, token.label, *_rounded([token.probability])]
            for place, token in zip(trace.encoding.content, found, strict=True)}


def _answer(trace: Trace) -> dict[str, list[Any]]:
    """First and last token of the best answer in the second sentence; empty where it has no token."""
    encoding, places = trace.encoding, _answer_places(trace.encoding)
    if not places:
        return {}
    window = Window(encoding.text, 0, len(encoding.pair), trace, places)
    (best,), (rows,) = best_answers([window], encoding.pair, top=1), answer_probabilities([window])
    return {name: [place, encoding.tokens[place], *_rounded([row[places.index(place)]])]
            for name, place, row in zip(("start", "end"), best.tokens, rows, strict=True)}


def _answer_places(encoding: Encoding) -> tuple[int, ...]:
    """Where an answer may stand: tokens of the second sentence, those of spaces alone left out."""
    return tuple(n for n in encoding.content
                 if encoding.sequence_ids[n] and encoding.pair[slice(*encoding.offsets[n])].strip())


def _rounded(values: Iterable[float]) -> list[float]:
    return [round(float(v), DECIMALS) for v in values]


def write_script(request: TraceRequest, loaded: Loaded, line_by_line: bool = True) -> str:
    """A Python file that prints `screen_numbers` for this request.

    Args:
        request: text, pair, attention and masked positions are carried over in
            both forms, everything else in the short one only.
        loaded: the model that made the picture.
        line_by_line: every step in plain PyTorch; otherwise through the engine.

    Raises:
        ValueError: a line-by-line script was asked for something only the
            engine does (heads switched off, say), or for another block.
    """
    if not line_by_line:
        return _short(request, loaded)
    if request != _plain(request):
        raise ValueError("the line-by-line script covers text, pair, direction and masks; take the short one")
    if loaded.config.model_type != "bert" or loaded.config.reading_order != "left-to-right":
        raise ValueError(f"{loaded.name} is no plain BERT block read from left to right; take the short script")
    causal = (request.attention or loaded.config.attention_kind) == "causal"
    return _LONG.format(
        model=loaded.name, text=request.text, pair=request.pair, act=_ACTIVATIONS[loaded.config.hidden_act],
        decimals=DECIMALS, masks=_MASKS.format(masked=list(request.masked)) if request.masked else "",
        future=_FUTURE if causal else "", best=_BEST.format(top=TOP, decimals=DECIMALS) * _has_words(loaded),
        answers="".join(_answer_parts(request, loaded)))


def _plain(request: TraceRequest) -> TraceRequest:
    """Of a request, what the line-by-line script covers."""
    return TraceRequest(request.text, request.pair, request.attention, request.model, request.masked,
                        parts=request.parts)


def _short(request: TraceRequest, loaded: Loaded) -> str:
    alone = alone_requests(request, loaded)
    more = _ALONE.format(requests=", ".join(map(_constructor, alone))) if alone else _decoded(loaded)
    return _SHORT.format(model=loaded.name, request=_constructor(request), more=more, given=", alone" * bool(alone))


def is_decoded(loaded: Loaded) -> bool:
    """Whether Tasks reads the model's token labels as a sequence, and not each by itself as the script does."""
    return "token_classification" in loaded.model.heads and loaded.config.label_decoding == "viterbi"


def _decoded(loaded: Loaded, indent: str = "") -> str:
    """The comment that says so."""
    return indent + _DECODED if is_decoded(loaded) else ""


def _has_words(loaded: Loaded) -> bool:
    """Whether a head of the model says words."""
    return bool(loaded.model.heads & {"mlm", "lm"})


def _answer_parts(request: TraceRequest, loaded: Loaded) -> list[str]:
    """The lines of the line-by-line script that come to what the heads say of this input, in their order."""
    heads, config, encoding = loaded.model.heads, loaded.config, loaded.tokenizer.encode(request.text, request.pair)
    parts = []
    if _has_words(loaded):
        last = last_place(encoding, config)
        parts += [_WORDS, _NEXT.format(last=last) if "lm" in heads else _GAPS]
    if "nsp" in heads and request.pair is not None:
        parts.append(_IS_NEXT.format(decimals=DECIMALS))
    if "classification" in heads:
        parts.append(_class_lines(loaded))
    elif "token_classification" in heads:
        names = label_names(config, _outputs(loaded))
        parts.append(_TOKEN_LABELS.format(labels=_names(names, config.id2label), decoded=_decoded(loaded, "    "),
                                          decimals=DECIMALS))
    if "question_answering" in heads and _answer_places(encoding):
        parts.append(_ANSWER.format(longest=MAX_ANSWER, most=MAX_ANSWER - 1, decimals=DECIMALS))
    if alone_requests(request, loaded):
        parts.append(_COSINE.format(decimals=DECIMALS))
    return parts


def _class_lines(loaded: Loaded) -> str:
    """What a sequence classifier says: a softmax, a sigmoid, or the numbers themselves."""
    config, count = loaded.config, _outputs(loaded)
    if config.problem_type == "regression":
        key, what, call = "numbers", "a number for each, as they are", ""
    elif several_hold(config, count):
        key, what, call = "labels", "each holds or not by itself, so a sigmoid for each", ".sigmoid()"
    else:
        key, what, call = "labels", "one of them holds, so a softmax over all", ".softmax(-1)"
    labels = _names(class_names(config, count), config.id2label)
    return _CLASSES.format(key=key, what=what, call=call, labels=labels, decimals=DECIMALS)


def _outputs(loaded: Loaded) -> int:
    """How many classes the model's classifier has."""
    return len(loaded.model.weights["classifier.bias"])


def _names(names: tuple[str, ...], of_config: tuple[str, ...]) -> str:
    """The classes' names as Python: the config's own where it has them."""
    return "config.id2label" if names == of_config else repr(names)


def _constructor(request: TraceRequest) -> str:
    """The request as Python, without what it leaves at its default."""
    asked = ((f.name, getattr(request, f.name), f.default) for f in fields(request) if f.name not in ("model", "parts"))
    return f"TraceRequest({', '.join(f'{name}={value!r}' for name, value, default in asked if value != default)})"


_ACTIVATIONS = {
    "gelu": "F.gelu(x)", "gelu_new": 'F.gelu(x, approximate="tanh")', "relu": "F.relu(x)",
    "gelu_pytorch_tanh": 'F.gelu(x, approximate="tanh")', "tanh": "torch.tanh(x)", "silu": "F.silu(x)",
}

_SHORT = '''"""One run of Both Ways, reproduced through its engine. Run it in the project's folder."""

from bert_core import TraceRequest, load_engine
from bert_core.script import screen_numbers, screen_text

engine = load_engine({model!r})
trace = engine.run({request})
{more}print(screen_text(screen_numbers(trace, engine.loaded(){given})))
'''

_ALONE = """# Their cosine is that of each sentence read by itself.
alone = engine.run_many([{requests}])
"""

_LONG = '''"""BERT on one sentence, line by line. Run it in the project's folder (or with it on PYTHONPATH)."""

import json

import torch
import torch.nn.functional as F

from bert_core import load_model

TEXT, PAIR = {text!r}, {pair!r}

loaded = load_model({model!r})  # only this line is not plain PyTorch: it reads the files
config, w = loaded.config, loaded.model.weights
H, Dh = config.num_attention_heads, config.head_size


def linear(x, name):
    return F.linear(x, w[name + ".weight"], w[name + ".bias"])


def norm(x, name):
    return F.layer_norm(x, (x.shape[-1],), w[name + ".weight"], w[name + ".bias"], config.layer_norm_eps)


def act(x):
    return {act}


def heads(x):  # (T, D) -> (H, T, Dh)
    return x.view(len(x), H, Dh).transpose(0, 1)


def first(hidden):
    return [round(v, {decimals}) for v in hidden[0, :3].tolist()]


{best}def read(ids, segments):  # two of (T,) -> what each layer gives, the embeddings first, L + 1 of (T, D)
    T = len(ids)
    # Token + segment + position, then LayerNorm.
    x = w["bert.embeddings.word_embeddings.weight"][ids] + w["bert.embeddings.token_type_embeddings.weight"][segments]
    x = norm(x + w["bert.embeddings.position_embeddings.weight"][:T], "bert.embeddings.LayerNorm")  # (T, D)
    states = [x]
    for i in range(config.num_hidden_layers):
        p = f"bert.encoder.layer.{{i}}."
        q, k, v = (heads(linear(x, p + "attention.self." + name)) for name in ("query", "key", "value"))
        scores = q @ k.transpose(-1, -2) / Dh**0.5  # (H, Tq, Tk)
{future}        context = (scores.softmax(-1) @ v).transpose(0, 1).reshape(T, -1)  # (T, D)
        x = norm(linear(context, p + "attention.output.dense") + x, p + "attention.output.LayerNorm")
        wide = act(linear(x, p + "intermediate.dense"))  # (T, I)
        x = norm(linear(wide, p + "output.dense") + x, p + "output.LayerNorm")
        states.append(x)
    return states


@torch.no_grad()
def main():
    encoding = loaded.tokenizer.encode(TEXT, PAIR)
    ids, segments = torch.tensor(encoding.input_ids), torch.tensor(encoding.token_type_ids)  # two of (T,)
{masks}    tokens = [loaded.tokenizer.token_of(i) for i in ids.tolist()]
    states = read(ids, segments)
    x = states[-1]  # (T, D), what every head reads
    shown = {{"tokens": tokens, "embeddings": first(states[0])}}
    shown |= {{f"layer {{i}}": first(state) for i, state in enumerate(states[1:], 1)}}
{answers}
    for name, value in shown.items():
        print(f"{{name}}: {{json.dumps(value, ensure_ascii=False)}}")


main()
'''

_BEST = '''def piece(index):  # tables may have more rows than there are pieces
    return loaded.tokenizer.token_of(index) if loaded.tokenizer.knows(index) else f"[id {{index}}]"


def best(logits):
    p, index = logits.softmax(-1).topk({top})
    return {{piece(i): round(v, {decimals}) for i, v in zip(index.tolist(), p.tolist())}}


'''

_MASKS = """    ids[{masked}] = loaded.tokenizer.mask_id
"""

_FUTURE = """        scores = scores.masked_fill(torch.ones(T, T, dtype=torch.bool).triu(1), float("-inf"))
"""

# What the heads say, each of which goes on from x (T, D).

_WORDS = """
    # The vocabulary: a transform, then a score for every piece.
    y = norm(act(linear(x, "cls.predictions.transform.dense")), "cls.predictions.transform.LayerNorm")
    words = w["bert.embeddings.word_embeddings.weight"]  # (V, D), the decoder too unless it has its own
    logits = y @ w.get("cls.predictions.decoder.weight", words).T + w["cls.predictions.bias"]  # (T, V)
"""

_NEXT = """    shown["next"] = best(logits[{last}])  # what would follow the last piece
"""

_GAPS = """    for place in (ids == loaded.tokenizer.mask_id).nonzero().flatten().tolist():
        shown[f"position {place}"] = best(logits[place])
"""

_IS_NEXT = """
    # Does the second sentence follow the first? The pooler reads [CLS].
    pooled = torch.tanh(linear(x[0], "bert.pooler.dense"))  # (D,)
    shown["is next"] = round(linear(pooled, "cls.seq_relationship").softmax(-1)[0].item(), {decimals})
"""

_CLASSES = """
    # The classifier reads [CLS] through the pooler: {what}.
    pooled = torch.tanh(linear(x[0], "bert.pooler.dense"))  # (D,)
    values = linear(pooled, "classifier"){call}  # (C,)
    shown["{key}"] = {{name: round(v, {decimals}) for name, v in zip({labels}, values.tolist())}}
"""

_TOKEN_LABELS = """
    # Each token's own best label, by a softmax over all of them.
{decoded}    p, best = linear(x, "classifier").softmax(-1).max(-1)  # two of (T,)
    labels = {labels}
    for i in encoding.content:  # all but [CLS] and [SEP]
        shown[f"position {{i}}"] = [tokens[i], labels[best[i]], round(p[i].item(), {decimals})]
"""

_DECODED = """# Tasks takes the most probable valid sequence of labels instead (label_decoding in config.json: viterbi).
"""

_ANSWER = """
    # The answer: a softmax over [CLS] and the second sentence's tokens (those of spaces alone left out), then the
    # best p(start) x p(end) of at most {longest} tokens.
    places = [i for i in encoding.content if encoding.sequence_ids[i] and PAIR[slice(*encoding.offsets[i])].strip()]
    start, end = linear(x, "qa_outputs")[[0, *places]].softmax(0)[1:].T  # two of (C,)
    spans = torch.outer(start, end).triu().tril({most})  # (C, C), none that ends before it starts
    for name, p, n in zip(("start", "end"), (start, end), divmod(spans.argmax().item(), len(places))):
        shown[name] = [places[n], tokens[places[n]], round(p[n].item(), {decimals})]
"""

_COSINE = """
    # Each sentence read by itself; its vector is the mean over its tokens, without [CLS] and [SEP].
    vectors = []
    for text in (TEXT, PAIR):
        alone = loaded.tokenizer.encode(text)
        last = read(torch.tensor(alone.input_ids), torch.tensor(alone.token_type_ids))[-1]  # (T, D)
        vectors.append(last[list(alone.content)].mean(0))  # (D,)
    shown["cosine"] = round(F.cosine_similarity(*vectors, dim=0).item(), {decimals})
"""
