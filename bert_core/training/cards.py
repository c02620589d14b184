"""Model cards: what a shipped model was made from, how, what it scores, what it is bad at.

A card is data (`card.json`), written beside the weights from the run's own
records and from what `evaluate` printed; `CARD.md` is the same for reading.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_core.counting import counted
from bert_core.training.corpus import parse_mix
from bert_core.training.flags import OF_A_SITTING, defaults

START = ("all-MiniLM-L6-v2 (Apache-2.0; 6 layers, 12 heads, 384 wide), a published sentence encoder, "
         "safetensors sha256 53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db")
#: Text and licence as its publisher states it.
SOURCES = {
    "enwiki2015": ("English Wikipedia, May 2015", "CC BY-SA 3.0"),
    "english_novels": ("English novels published before 1930", "public domain"),
    "imdb_reviews_half": ("Large Movie Review Dataset (Maas et al. 2011)", "research use"),
    "wikinews": ("Wikinews", "CC BY 2.5"),
    "captions": ("Multi30k captions of Flickr30k pictures", "no licence file; research and education"),
    "onestop_english": ("OneStopEnglish", "CC BY-SA 4.0"),
    "fairy_tales_grimm": ("Grimm's fairy tales, an old translation", "public domain"),
    "storybooks": ("Global African Storybook project and Pratham", "CC BY, per story"),
    "tatoeba_english": ("Tatoeba", "CC BY 2.0 FR"),
    "sst2": ("SST-2 as in GLUE", "research use"),
    "ner": ("Universal NER English EWT dev, WikiGold, WNUT-17 train, classes mapped", "CC BY-SA 4.0, CC BY 4.0"),
    "squad": ("SQuAD 1.1", "CC BY-SA 4.0"),
    "stsb": ("STS benchmark", "as stated in its LICENSE.txt"),
    "cola": ("CoLA", "research use"),
}
SUMMARY = {
    "twin-bert": "A BERT: masked pieces and next sentence, attention both ways.",
    "twin-gpt": "twin-bert's causal twin: the same start and text, each piece predicted from those before it.",
    "twin-rtl": "twin-gpt on reversed text: each piece predicted from those after it.",
    "twin-bert-sst2": "Sentiment of a sentence, negative or positive, read from [CLS].",
    "twin-bert-ner": "Names of people, places and organisations, a class for each token.",
    "twin-bert-squad": "The span of a text that answers a question.",
    "twin-bert-stsb": "Sentence vectors whose cosine follows how alike two sentences are.",
    "twin-bert-cola": "Whether a sentence is acceptable English, read from [CLS].",
}
SHARED_START = (
    "All three twins start from the same published encoder, which was trained with both-way attention. The causal "
    "twins had to unlearn looking ahead within their token budget, so a difference between the twins shows the "
    "objective and the mask on this budget, not what each would reach from random weights."
)
LIMITS = {
    "twin-bert-cola": (
        "Says `acceptable` too often: of the unacceptable sentences it finds fewer than half.",
    ),
    "twin-bert-squad": (
        "Its answers are often not exactly right (see `exact_match`): it shows how a span is chosen, not what is true.",
    ),
    "twin-bert-stsb": (
        "Less good at it than where all training began: all-MiniLM-L6-v2 untouched, made for sentence vectors, has a "
        "Spearman of 0.8674 on the same 1,500 pairs (`python -m bert_core evaluate --task stsb --model FOLDER "
        "--data ../shared/data`).",
    ),
    "twins": (
        "Trained on very little text for a language model; facts are often wrong and rare words are guessed badly.",
        "Wikipedia of 2015, old novels and film reviews: their gaps and prejudices are in it.",
        "English only, lower-cased; other scripts are [UNK] or single letters.",
    ),
    "tasks": (
        "Stands on twin-bert and inherits its gaps.",
        "For teaching. Not for decisions about people.",
    ),
}
#: What next-sentence prediction below a share of right answers is called; half of the false pairs come from the same
#: document.
NSP_LIMITS = (
    (0.6, "Next-sentence prediction is about as good as a coin: it has seen a few thousand pairs, half of the false "
          "ones from the same document."),
    (0.8, "Next-sentence prediction is often wrong, mostly where a false pair comes from the same document."),
)
#: What makes the corpus of tokenised text that a lent GPU reads (scripts/lent_gpu.py), by its folder.
CORPUS_MADE_BY = {
    "runs/pieces": "python -m bert_core pieces --corpus ../shared/data/pretrain --out runs/pieces --limit "
                   "enwiki2015=51000000,imdb_reviews_half=4900000,english_novels=4500000",
}
#: Metrics that a card shows, by task; all but perplexity and the correlations are shares of 1.
METRICS = {
    "mlm": ("accuracy", "top5", "perplexity"), "clm": ("perplexity", "accuracy"), "nsp": ("accuracy",),
    "blimp": ("accuracy",), "cloze": ("top1", "top5"), "sst2": ("accuracy",), "ner": ("f1", "precision", "recall"),
    "squad": ("f1", "exact_match"), "stsb": ("spearman", "pearson"), "cola": ("matthews", "accuracy"),
}
#: How a card's table is read.
READ_SCORES = (
    "Values are shares of 1, but for perplexity and the correlations (matthews, pearson, spearman). The spread is the "
    "standard deviation over the seeds, 0 where there is one. n counts the texts or pairs that were scored."
)
#: Flags that a card shows whatever they are, in its order; it shows the others where they differ from their default.
ALWAYS_SHOWN = {
    "finetune": ("task", "data", "model", "limit", "epochs", "rank", "batch", "lr", "head_lr", "word_dropout", "seed",
                 "out"),
    "pretrain": ("corpus", "objective", "init", "packed", "pack_tokens", "tokens", "mix", "step_tokens", "micro_tokens",
                 "optimizer", "lr", "head_lr", "warmup", "decay", "loss_fraction", "nsp_weight", "seed", "out"),
}


def card(name: str, run: Mapping[str, Any], scores: Sequence[Mapping[str, Any]], hardware: str) -> dict[str, Any]:
    """A shipped model's card.

    Args:
        run: what the run recorded of itself (run.json, with `seconds` and `steps`;
            `before` has the sittings that its start had).
        scores: what `evaluate --json` printed for this model, each with its `command`.
        hardware: the machine, in words.
    """
    pretrained = "objective" in run
    return {
        "name": name,
        "summary": SUMMARY[name],
        "start": START if pretrained else run["model"],
        "shared_start": SHARED_START if pretrained else None,
        "data": _data(run),
        "rows": run.get("rows"),
        "sittings": sittings(run, hardware),
        "scores": [row for score in scores for row in _scores(score)],
        "bad_at": [*_nsp_limit(scores), *LIMITS.get(name, ()), *LIMITS["twins" if pretrained else "tasks"]],
    }


def sittings(run: Mapping[str, Any], hardware: str) -> list[dict[str, Any]]:
    """What a finished run's model has read, its start's sittings first; arguments as for `card`."""
    pieces = {"tokens": run.get("end_at") or run.get("tokens")}
    size = pieces if "objective" in run else {"tokens": None, "rows": run["rows"]}
    last = {**size, "steps": run["steps"], "seed": run["seed"], "hardware": hardware,
            "seconds": run["seconds"], "command": command(run)}
    return [*run.get("before", ()), last]


def sittings_of(folder: Path) -> list[dict[str, Any]] | None:
    """The sittings of the model in a folder, None where nothing is known of them.

    Its card says them; a finished run has none, but its record as it was then: in the model's folder, and of older
    runs of `pretrain` beside it.
    """
    found = read_card(folder)
    places = (folder / "run.json", *([folder.parent / "run.json"] if folder.name == "model" else []))
    record = next((path for path in places if path.is_file()), None)
    if found is not None:  # the first cards said the rows of a fine-tuning once for all
        return [{"rows": found["rows"], **one} if found.get("rows") else one for one in found["sittings"]]
    run = json.loads(record.read_text(encoding="utf-8")) if record else {}
    return sittings(run, "not noted") if "seconds" in run else None


def _nsp_limit(scores: Sequence[Mapping[str, Any]]) -> list[str]:
    right = next((score["accuracy"] for score in scores if score["task"] == "nsp"), 1.0)
    return [words for below, words in NSP_LIMITS if right < below][:1]


def _data(run: Mapping[str, Any]) -> list[dict[str, Any]]:
    if "objective" not in run:
        what, licence = SOURCES[run["task"]]
        return [{"source": run["task"], "what": what, "licence": licence, "share": 1.0}]
    read = _read_of_each(run)
    return [{"source": name, "what": SOURCES[name][0], "licence": SOURCES[name][1],
             "share": round(count / sum(read.values()), 4)} for name, count in read.items()]


def _read_of_each(run: Mapping[str, Any]) -> dict[str, float]:
    """Source -> word pieces of it that were read in all sittings, by the mix that each sitting's command tells.

    Raises:
        ValueError: a command tells none; which sources shared equally stands in no record.
    """
    read: dict[str, float] = {}
    for sitting in sittings(run, ""):
        mix = _flag(sitting["command"], "--mix")
        if mix is None:
            raise ValueError(f"the card can't say what was read: {sitting['command']!r} names no --mix")
        names = [item.partition("=")[0].strip() for item in mix.split(",")]
        for name, share in parse_mix(mix, names).items():
            read[name] = read.get(name, 0.0) + share * sitting["tokens"]
    return read


def _flag(command: str, name: str) -> str | None:
    """What a command line says of a flag, None where it doesn't."""
    words = shlex.split(command)
    return words[words.index(name) + 1] if name in words else None


def command(run: Mapping[str, Any]) -> str:
    """The command line that makes this model again."""
    verb = "pretrain" if "objective" in run else "finetune"
    always = [key for key in ALWAYS_SHOWN[verb] if run.get(key) is not None]
    changed = [key for key, default in defaults(verb).items()
               if key not in (*ALWAYS_SHOWN[verb], *OF_A_SITTING) and run.get(key, default) != default]
    words = [(f"--{key.replace('_', '-')}", *(() if run[key] is True else (str(run[key]),)))
             for key in always + changed]
    return f"python -m bert_core {verb} {' '.join(shlex.join(one) for one in words)}"


def _scores(score: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {"task": score["task"], "metric": metric, "value": round(score[metric], 4),
         "std": round(score.get(f"{metric}_std", 0.0), 4), "n": score["n"], "command": score["command"]}
        for metric in METRICS[score["task"]]
    ]


def to_markdown(found: Mapping[str, Any]) -> str:
    """The card for reading: what the model is worth first, how it was made last."""
    lines = [f"# {found['name']}", "", found["summary"], "",
             "## Scores", "", "| task | metric | value | spread | n | command |", "|---|---|---|---|---|---|"]
    lines += [f"| {s['task']} | {s['metric']} | {s['value']:g} | {s['std']:g} | {s['n']:,} | `{s['command']}` |"
              for s in found["scores"]]
    lines += ["", READ_SCORES]
    lines += ["", "## Bad at", "", *(f"- {line}" for line in found["bad_at"]), ""]
    if found["shared_start"]:
        lines += ["## What the shared start means", "", found["shared_start"], ""]
    lines += ["## Data", "", "| source | what | share | licence |", "|---|---|---|---|"]
    lines += [f"| {d['source']} | {d['what']} | {d['share']:.1%} | {d['licence']} |" for d in found["data"]]
    lines += ["", "## How it was made", "", *_made(found)]
    return "\n".join(lines) + "\n"


def _made(found: Mapping[str, Any]) -> list[str]:
    """The start, how many sittings there were, then each with its machine and command."""
    lines, sittings = [f"- Start: {found['start']}"], found["sittings"]
    if len(sittings) > 1:
        one_by_one = f"{len(sittings)} sittings, each from where the last one ended"
        if sittings[0]["tokens"]:
            lines.append(f"- Read in all: {sum(one['tokens'] for one in sittings):,} word pieces in {one_by_one}")
        else:  # rows of one file, which the sittings share
            lines.append(f"- Trained in {one_by_one}, on the {found['start']} of its day")
    for sitting in sittings:
        lines += [
            f"- Read: {_read(sitting, found)} in {sitting['steps']:,} steps, seed {sitting['seed']}",
            f"- Machine: {sitting['hardware']}; {_minutes(sitting['seconds'])}",
        ]
        before = CORPUS_MADE_BY.get(_flag(sitting["command"], "--corpus") or "")
        if before:
            lines.append(f"- Its corpus, tokenised before: `{before}`")
        lines.append(f"- Command: `{sitting['command']}`")
    return lines


def _read(sitting: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    """How much one sitting read: pieces, or rows and how often all of them."""
    if sitting["tokens"]:
        return f"{sitting['tokens']:,} word pieces"
    passes = float(_flag(sitting["command"], "--epochs") or defaults("finetune")["epochs"])
    times = "1 pass" if passes == 1 else f"{passes:g} passes"
    return f"{times} over {counted(sitting.get('rows', found['rows']), 'row')}"


def write_card(folder: Path, found: Mapping[str, Any]) -> None:
    """Write card.json and CARD.md."""
    (folder / "card.json").write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    (folder / "CARD.md").write_text(to_markdown(found), encoding="utf-8")


def read_card(folder: Path) -> dict[str, Any] | None:
    """The card beside a model, None where it has none."""
    path = folder / "card.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def _minutes(seconds: float) -> str:
    """A time in words, to the minute; at least one."""
    return counted(max(1, round(seconds / 60)), "minute")
