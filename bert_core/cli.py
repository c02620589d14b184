"""The command line: `python -m bert_core COMMAND`.

Every command is a task of `bert_core.tasks` or training's own, and prints JSON
with --json. An error is one line on standard error and exit code 2, with
nothing on standard output. Nothing heavy is imported before the arguments are
known to be right.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bert_core.arguments import COUNT, Parser, UsageError, path
from bert_core.counting import counted

if TYPE_CHECKING:
    from bert_core.serving.engine import Engine

#: Commands of bert_core.training.commands, which parse their own arguments.
TRAINING = {
    "pretrain": "train a BERT or a GPT on a folder of text",
    "pieces": "tokenise a corpus once, for pretrain to read where there is no time",
    "finetune": "train a task on top of a model",
    "evaluate": "measure a model on held-out data",
    "export": "write a model as a folder that transformers opens",
}


@dataclass(frozen=True)
class Command:
    """One command over text.

    Attributes:
        help: one line for --help.
        model: the default model.
        parts: names of its texts; one in brackets may be left out.
        run: (engine, arguments, texts) -> what is printed as JSON.
        show: the same for people.
        heads: of `Model.heads`, one of which it needs; none where every model will do.
        options: more arguments, name -> add_argument's keywords.
    """

    help: str
    model: str
    parts: tuple[str, ...]
    run: Callable[[Engine, argparse.Namespace, list[str]], Any]
    show: Callable[[Any], str]
    heads: tuple[str, ...] = ()
    options: tuple[tuple[str, dict[str, Any]], ...] = ()

    @property
    def required(self) -> int:
        return sum(not part.startswith("[") for part in self.parts)


# --- the commands: data in, plain data out -----------------------------------


def _fill_mask(engine: Engine, args: argparse.Namespace, texts: list[str]) -> Any:
    from bert_core import tasks

    return _plain(tasks.fill_mask(engine, texts[0], top=args.top))


def _next(engine: Engine, args: argparse.Namespace, texts: list[str]) -> Any:
    from bert_core import tasks

    return {"predictions": _plain(tasks.continuation(engine, texts[0], top=args.top))}


def _classify(engine: Engine, args: argparse.Namespace, texts: list[str]) -> Any:
    from bert_core import tasks

    found = tasks.classify(engine, *texts)
    shown = {"label": found.label, "probability": found.probability, "probabilities": dict(found.probabilities)}
    return shown if found.probabilities else shown | {"values": dict(found.values)}  # a regression's


def _nsp(engine: Engine, args: argparse.Namespace, texts: list[str]) -> Any:
    from bert_core import tasks

    return {"is_next": tasks.is_next(engine, *texts)}


def _ner(engine: Engine, args: argparse.Namespace, texts: list[str]) -> Any:
    from bert_core import tasks

    return {"entities": _plain(tasks.find_entities(engine, texts[0]).entities)}


def _answer(engine: Engine, args: argparse.Namespace, texts: list[str]) -> Any:
    from bert_core import tasks

    found = tasks.answer(engine, *texts)
    return {"text": found.text, "start": found.start, "end": found.end, "score": found.score}


def _embed(engine: Engine, args: argparse.Namespace, texts: list[str]) -> Any:
    from bert_core import tasks

    return {"vector": tasks.embed(engine, texts[0]).tolist()}


def _score(engine: Engine, args: argparse.Namespace, texts: list[str]) -> Any:
    from bert_core import tasks

    found = tasks.score(engine, texts[0])
    return {"log_likelihood": found.log_likelihood, "tokens": found.tokens, "pieces": _plain(found.pieces)}


def _trace(engine: Engine, args: argparse.Namespace, texts: list[str]) -> Any:
    from bert_core.trace import TraceRequest

    trace = engine.run(TraceRequest(texts[0], args.pair, attention=args.attention, all_logits=args.all_logits))
    trace.save(args.out)
    return {"out": args.out, "model": trace.model, "attention_kind": trace.attention_kind,
            "arrays": {name: list(array.shape) for name, array in trace.arrays.items()}}


def _plain(items: Sequence[Any]) -> list[dict[str, Any]]:
    return [dataclasses.asdict(item) for item in items]


# --- the same for people -----------------------------------------------------


def _show_predictions(predictions: Sequence[dict[str, Any]]) -> str:
    return "\n".join(f"  {p['probability']:7.2%}  {p['token']}" for p in predictions) or "  beyond the model's limit"


def _show_gaps(gaps: Sequence[dict[str, Any]]) -> str:
    return "\n".join(f"[MASK] at {gap['position']}\n{_show_predictions(gap['predictions'])}" for gap in gaps)


def _show_class(found: dict[str, Any]) -> str:
    if "values" in found:
        return "\n".join(f"  {value:9.4f}  {name}" for name, value in found["values"].items())
    return "\n".join(f"  {p:7.2%}  {name}" for name, p in found["probabilities"].items())


def _show_entities(found: dict[str, Any]) -> str:
    lines = [f"  {e['label']:5} {e['score']:7.2%}  {e['text']}  ({e['start']}-{e['end']})" for e in found["entities"]]
    return "\n".join(lines) or "no entities"


def _show_score(found: dict[str, Any]) -> str:
    lines = [f"  {p['log_probability']:9.4f}  {p['token']}" for p in found["pieces"]]
    return "\n".join([*lines, f"{found['log_likelihood']:.4f} nats over {counted(found['tokens'], 'token')}"])


def _show_trace(found: dict[str, Any]) -> str:
    lines = [f"  {name:20} {tuple(shape)}" for name, shape in found["arrays"].items()]
    return "\n".join([f"{found['model']}, {found['attention_kind']} -> {found['out']}", *lines])


def _show_models(found: Sequence[dict[str, Any]]) -> str:
    rows = [f"{m['name']:18} {m['architecture']:32} {m['parameters']:>12,}  {', '.join(m['tasks']) or 'embed'}"
            for m in found]
    return "\n".join(rows) or "no models are shipped here"


def _show_results(found: dict[str, Any] | list[dict[str, Any]]) -> str:
    """What training's commands give, a value a line; a blank line between the tasks of `evaluate --all`."""
    tables = found if isinstance(found, list) else [found]
    return "\n\n".join("\n".join(f"  {name:16} {_show_value(value)}" for name, value in table.items())
                       for table in tables)


def _show_value(value: Any) -> str:
    if isinstance(value, str):
        return value
    return f"{value:.4f}" if isinstance(value, float) else _json(value)


_TOP = (("--top", {"type": COUNT, "default": 5, "metavar": "K", "help": "predictions (default 5)"}),)
_TRACE_OPTIONS = (
    ("--pair", {"help": "second sentence"}),
    ("--attention", {"choices": ("bidirectional", "causal"),
                     "help": "default: the model's own, and the only way of a model that runs through transformers"}),
    ("--all-logits", {"action": "store_true", "help": "vocabulary logits at every position"}),
    ("--out", {"required": True, "type": path, "metavar": "FILE.npz", "help": "where the arrays go"}),
)

COMMANDS = {
    "fill-mask": Command("the best words for each [MASK]", "twin-bert", ("TEXT",), _fill_mask, _show_gaps, ("mlm",),
                         _TOP),
    "next": Command("what a causal model expects after a text", "twin-gpt", ("TEXT",), _next,
                    lambda found: _show_predictions(found["predictions"]), ("lm",), _TOP),
    "classify": Command("a classifier's answer", "twin-bert-sst2", ("TEXT", "[PAIR]"), _classify, _show_class,
                        ("classification",)),
    "nsp": Command("does B follow A?", "twin-bert", ("A", "B"), _nsp, lambda found: f"is next: {found['is_next']:.2%}",
                   ("nsp",)),
    "ner": Command("people, places and organisations", "twin-bert-ner", ("TEXT",), _ner, _show_entities,
                   ("token_classification",)),
    "answer": Command("the words of a context that answer", "twin-bert-squad", ("QUESTION", "CONTEXT"), _answer,
                      lambda found: f"{found['text']}  ({found['start']}-{found['end']}, {found['score']:.2%})",
                      ("question_answering",)),
    "embed": Command("a sentence vector", "twin-bert", ("TEXT",), _embed,
                     lambda found: " ".join(f"{value:.5f}" for value in found["vector"])),
    "score": Command("(pseudo-)log-likelihood in nats", "twin-bert", ("TEXT",), _score, _show_score,
                     ("mlm", "lm")),
    "trace": Command("every intermediate of one forward pass, as .npz", "twin-bert", ("TEXT",), _trace, _show_trace,
                     options=_TRACE_OPTIONS),
}


# --- from arguments to an answer ---------------------------------------------


def build_parser() -> argparse.ArgumentParser:
    """The parser of every command but training's own, which only appear in the list."""
    parser = Parser(prog="python -m bert_core", allow_abbrev=False,
                    description="BERT and its relatives: predictions, traces, training.")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=Parser)
    models = commands.add_parser("models", help="the shipped models", allow_abbrev=False)
    models.add_argument("--json", action="store_true", help="JSON on standard output")
    for name, command in COMMANDS.items():
        one = commands.add_parser(name, help=command.help, description=command.help, allow_abbrev=False)
        _add_arguments(one, name, command)
    for name, text in TRAINING.items():
        commands.add_parser(name, help=text, add_help=False)
    return parser


def _add_arguments(parser: argparse.ArgumentParser, name: str, command: Command) -> None:
    """What a command over text takes."""
    parser.add_argument("texts", nargs="*", metavar=" ".join(command.parts),
                        help="the text" + ("" if name == "trace" else ", or --file")
                        + "; after -- where it begins with -")
    parser.add_argument("--model", default=command.model, help=f"name, folder or hub id (default {command.model})")
    parser.add_argument("--json", action="store_true", help="JSON on standard output")
    if name != "trace":
        parser.add_argument("--file", help="one input a line, parts separated by a tab; prints a JSON list")
    for flag, keywords in command.options:
        parser.add_argument(flag, **keywords)


def read_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """What was asked; a command's options may stand before, between and after its texts.

    argparse gives subparsers no such mixing, so the command's own parser reads what follows its name; all behind
    `--` is text.

    Raises:
        UsageError: it is not understood.
    """
    if not argv or argv[0] not in COMMANDS:
        return build_parser().parse_args(argv)
    name, rest = argv[0], list(argv[1:])
    end = rest.index("--") if "--" in rest else len(rest)
    command = COMMANDS[name]
    parser = Parser(prog=f"python -m bert_core {name}", description=command.help, allow_abbrev=False)
    _add_arguments(parser, name, command)
    args = parser.parse_intermixed_args(rest[:end])
    args.command, args.texts = name, [*args.texts, *rest[end + 1:]]
    return args


def main(argv: Sequence[str]) -> int:
    """Run one command.

    Returns:
        0, or 2 after one line on standard error.
    """
    try:
        _ready_streams()
        try:
            said = _train(argv) if argv and argv[0] in TRAINING else _answer_to(read_arguments(argv))
            if said is not None:
                print(said)
        finally:
            _flush()  # --help too, which ends by SystemExit
        return 0
    except (ValueError, OSError, RuntimeError, MemoryError) as error:
        print(f"error: {_in_a_line(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("error: stopped", file=sys.stderr)
        return 130


def _ready_streams() -> None:
    """Any character can be written.

    Raises:
        OSError: standard output is closed.
    """
    if sys.stderr is None:  # closed; print would take standard output instead
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - to the end
    if sys.stdout is None:
        raise OSError("standard output is closed")
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def _flush() -> None:
    """Write now, while a full disk or a reader who left can still be said in a line."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python tries once more when it ends
        raise


def _in_a_line(error: BaseException) -> str:
    """What went wrong; of a file that can't be used, which and why."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.strerror}: {error.filename!r}"
    return " ".join(str(error).split())


def _train(argv: Sequence[str]) -> str | None:
    """Run one of training's own commands; what it prints, None where another process prints it for all."""
    from bert_core.training.commands import add_parsers

    parser = Parser(prog="python -m bert_core", allow_abbrev=False)
    add_parsers(parser.add_subparsers(dest="command", required=True, parser_class=Parser))
    args = parser.parse_args(argv)
    found = args.run(args)
    if found is None:
        return None
    return _json(found) if args.json else _show_results(found)


def _answer_to(args: argparse.Namespace) -> str:
    return _models(args) if args.command == "models" else _run(args)


def _models(args: argparse.Namespace) -> str:
    from bert_core.load import models

    found = models()
    return _json(found) if args.json else _show_models(found)


def _run(args: argparse.Namespace) -> str:
    """What a command over text prints."""
    command = COMMANDS[args.command]
    lines = _file_lines(args) if getattr(args, "file", None) is not None else None
    if lines is None:
        _check_texts(args.command, command, args.texts)
    elif args.texts:
        raise UsageError("give a text or --file, not both")
    engine = _engine(args.model)
    if command.heads:  # before any line: what all of them lack is no line's error
        from bert_core.tasks.support import require_head

        require_head(engine, None, *command.heads)
    if lines is None:
        found = command.run(engine, args, args.texts)
        _warn_if_cut(engine, args, args.texts)
        return _json(found) if args.json else command.show(found)
    return _json([_one_line(engine, command, args, number, line) for number, line in enumerate(lines, start=1)])


def _engine(model: str) -> Engine:
    """An engine of this process; packing pays only in a process that stays."""
    from bert_core.serving.local import LocalEngine

    return LocalEngine(model, pack=False)


def _file_lines(args: argparse.Namespace) -> list[bytes]:
    with open(args.file, "rb") as file:
        data = file.read()
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    return lines[:-1] if lines[-1] == b"" else lines


def _one_line(engine: Engine, command: Command, args: argparse.Namespace, number: int, line: bytes) -> Any:
    """The answer to one line of a file, or what is wrong with it."""
    try:
        texts = line.removesuffix(b"\r").decode("utf-8").split("\t")
        _check_texts(args.command, command, texts)
        found = command.run(engine, args, texts)
        _warn_if_cut(engine, args, texts, f"line {number}: ")
        return found
    except UnicodeDecodeError:
        return {"error": "the line is not UTF-8"}
    except ValueError as error:
        return {"error": _in_a_line(error)}


def _check_texts(name: str, command: Command, texts: list[str]) -> None:
    if not command.required <= len(texts) <= len(command.parts):
        wanted, got = " and ".join(command.parts), counted(len(texts), "text")
        raise UsageError(f"{name} takes {wanted}; got {got}" if texts else f"{name} needs {wanted}")
    if name != "trace" and not all(text.strip() for text in texts):
        raise UsageError("the text is empty")


def _warn_if_cut(engine: Engine, args: argparse.Namespace, texts: list[str], where: str = "") -> None:
    """A line on standard error where the model's limit cuts the input.

    The context of `answer` is read in windows; its question may be cut.
    """
    if args.command == "answer":
        unread = _unread_of_answer(engine, *texts)
    else:
        pair = args.pair if args.command == "trace" else texts[1] if len(texts) > 1 else None
        kept = engine.loaded().tokenizer.encode(texts[0], pair)
        unread = (f"cut at the model's limit of {len(kept)} tokens; {kept.dropped} more{_looked_at(texts[0], pair)} "
                  "were not read") if kept.dropped else ""
    if unread:
        print(f"warning: {where}{unread}", file=sys.stderr)


def _unread_of_answer(engine: Engine, question: str, context: str) -> str:
    """What `answer` leaves unread of its question, and of a context longer than is looked at; '' if nothing."""
    from bert_core.tasks.answers import cut_question
    from bert_core.tokenizer import MAX_CHARACTERS

    tokenizer, said = engine.loaded().tokenizer, []
    encoding, kept = tokenizer.encode(question), tokenizer.encode(cut_question(engine.loaded(), question))
    dropped = encoding.dropped + len(encoding) - len(kept)
    if dropped:
        said.append(f"the question is too long: its last {dropped} tokens{_looked_at(question)} were not read")
    if len(context) > MAX_CHARACTERS:
        said.append(f"the context is too long: all behind its first {MAX_CHARACTERS:,} characters was not read")
    return "; ".join(said)


def _looked_at(*texts: str | None) -> str:
    """Of which characters the pieces were counted, where those are not all."""
    from bert_core.tokenizer import MAX_CHARACTERS

    longest = max(len(text or "") for text in texts)
    return f" of the first {MAX_CHARACTERS:,} characters, and all behind them," if longest > MAX_CHARACTERS else ""


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
