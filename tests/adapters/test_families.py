"""Every family loads by name and gives transformers' numbers, at float64 to 1e-10, in each array that it has."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bert_core.load import load_model
from bert_core.trace import ALL_PARTS, INPUT_PARTS, TraceRequest, run_batch
from tests.adapters.families import FAMILIES, make_family
from tests.adapters.loading_table import HEADER, TARGET, row_of
from tests.core.reference import open_reference, reference_arrays
from tests.core.sentences import ODD, check_one_line

REQUESTS = [TraceRequest("The dog barked in [MASK] .", "who was it?", all_logits=True), TraceRequest("he"),
            TraceRequest("Le chien [MASK] dans le jardin", all_logits=True), TraceRequest("dog " * 60)]
ATOL = 1e-10


@pytest.fixture(scope="module", params=FAMILIES, ids=lambda family: family.name)
def both(request, tmp_path_factory):
    """(family, ours, transformers'), one folder, float64."""
    folder = str(make_family(tmp_path_factory.mktemp("family"), request.param))
    return request.param, load_model(folder, torch.float64), open_reference(folder), folder


def reference(ours, theirs, encoding, padding: int) -> dict[str, np.ndarray]:
    """What transformers gives out for one input, padded where there is room."""
    extra = min(padding, ours.tokenizer.limit - len(encoding))
    given = {"input_ids": [[*encoding.input_ids, *[ours.config.pad_token_id] * extra]],
             "attention_mask": [[1] * len(encoding) + [0] * extra]}
    if ours.config.type_vocab_size > 1:
        given["token_type_ids"] = [[*encoding.token_type_ids, *[0] * extra]]
    with torch.no_grad():
        out = theirs(**{name: torch.tensor(value) for name, value in given.items()},
                     output_hidden_states=True, output_attentions=True)
    length = len(encoding)
    found = {"hidden_states": torch.stack(out.hidden_states)[:, 0, :length],
             "attention_probs": torch.stack(out.attentions)[:, 0, :, :length, :length]}
    logits = out.get("prediction_logits", out.get("logits"))
    if logits is not None and logits.ndim == 3:
        found["vocabulary"] = logits[0, :length]
    return {name: value.numpy() for name, value in found.items()}


def test_the_right_engine_runs_it(both):
    family, ours, _, _ = both
    assert (type(ours.model).__name__ == "Model") == family.ours


def test_it_splits_text_as_transformers_does(both):
    from transformers import AutoTokenizer

    _, ours, _, folder = both
    theirs = AutoTokenizer.from_pretrained(folder)
    for text, pair in (("The dog barked, all night!", None), ("le chien", "Paris is it?"), ("śpi ủ 中 😀", None)):
        assert list(ours.tokenizer.encode(text, pair).input_ids) == theirs(text, pair)["input_ids"]


@pytest.mark.parametrize("padding", [0, 3])
def test_what_it_has_equals_transformers(both, padding):
    family, ours, theirs, _ = both
    together = run_batch(ours, REQUESTS)
    alone = [run_batch(ours, [request])[0] for request in REQUESTS]
    atol = 1e-5 if family.single and padding else ATOL  # float32 softmax, kernels differ by shape
    for trace in together if padding else alone:
        expected = reference(ours, theirs, trace.encoding, padding)
        for name in ("hidden_states", "attention_probs"):
            np.testing.assert_allclose(trace.arrays[name], expected[name], rtol=0, atol=atol, err_msg=name)
        if trace.has("mlm_logits"):
            rows = expected["vocabulary"][trace.mlm_positions]
            np.testing.assert_allclose(trace.mlm_logits, rows, rtol=0, atol=atol)
        if trace.has("lm_logits"):
            np.testing.assert_allclose(trace.lm_logits, expected["vocabulary"], rtol=0, atol=atol)


def test_inner_arrays_equal_the_modules_of_transformers(both):
    family, ours, theirs, _ = both
    trace = run_batch(ours, REQUESTS[:1])[0]
    if not family.ours:
        table = theirs.get_input_embeddings()(torch.tensor(trace.input_ids)).detach()
        np.testing.assert_allclose(trace.token_embeddings, table, rtol=0, atol=ATOL)
        return
    expected = reference_arrays(theirs, ours.config, trace.encoding, extra=3)
    expected.pop("output")
    for name, array in expected.items():
        np.testing.assert_allclose(trace.arrays[name], array, rtol=0, atol=ATOL, err_msg=name)


def test_every_gap_has_a_reason(both):
    _, ours, _, _ = both
    trace = run_batch(ours, REQUESTS[:1])[0]
    for part in set(ALL_PARTS) - set(INPUT_PARTS):
        assert trace.has(part) != bool(ours.gaps.get(part)), part
        if not trace.has(part):
            with pytest.raises(AttributeError, match="gives no"):
                getattr(trace, part)


def test_a_mask_is_one_token_wherever_the_family_has_one(both):
    family, ours, _, _ = both
    encoding = ours.tokenizer.encode("the [MASK] barked [MASK]")
    assert len(encoding.mask_positions) == (0 if family.name in ("GPT-2", "unknown: OPT") else 2)
    for position in encoding.mask_positions:
        assert encoding.text[slice(*encoding.offsets[position])].strip() == "[MASK]"


def test_long_text_is_cut_and_said(both):
    _, ours, _, _ = both
    encoding = ours.tokenizer.encode("dog " * 300)
    assert encoding.truncated
    assert len(encoding) == ours.tokenizer.limit
    assert encoding.cut_at[0] == encoding.offsets[encoding.content[-1]][1]


def test_odd_text_gets_a_trace_or_one_line(both):
    family, ours, _, _ = both
    refused = []
    for text in ODD:
        try:
            trace = run_batch(ours, [TraceRequest(text, pair) for pair in (None, text)])[1]
        except ValueError as error:
            check_one_line(error)
            refused.append(text)
            continue
        for position in trace.encoding.content:
            start, end = trace.encoding.offsets[position]
            assert 0 <= start <= end <= len(trace.encoding.text)
    assert refused == ([""] if family.name in ("GPT-2", "unknown: OPT") else [])  # nothing at all to read there


def test_what_only_our_encoder_can_do_is_refused_in_a_line(both):
    family, ours, _, _ = both
    if family.ours:
        return
    other = "bidirectional" if ours.config.is_decoder else "causal"
    for request in (TraceRequest("dog", attention=other), TraceRequest("dog", heads_off=((0, 1),)),
                    TraceRequest("dog", window=1), TraceRequest("dog", embeddings_off=("token",)),
                    TraceRequest("dog", feed_forward_off=(0,)), TraceRequest("dog", neurons=((0, 0, 0.0),)),
                    TraceRequest("dog", position_order=tuple(range(len(ours.tokenizer.encode("dog"))))[::-1])):
        with pytest.raises(ValueError, match="runs through transformers"):
            run_batch(ours, [request])
    with pytest.raises(ValueError, match="runs through transformers, only with its own"):
        run_batch(ours, [TraceRequest("dog"), TraceRequest("he", attention=other)])


def test_the_loading_table_is_what_its_command_writes():
    written = TARGET.read_text(encoding="utf-8")
    assert written.startswith(HEADER)
    rows = written.removeprefix(HEADER).splitlines()
    assert [row.split(" | ")[0].removeprefix("| ") for row in rows] == [family.name for family in FAMILIES]


def test_the_loading_table_says_what_loaded(both):
    family, ours, _, _ = both
    assert row_of(family, ours) in TARGET.read_text(encoding="utf-8").splitlines()
