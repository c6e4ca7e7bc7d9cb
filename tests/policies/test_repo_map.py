"""Aider's repo map: tags, weights, PageRank, the budget, and the policy that puts it in front of the conversation."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentkit.log import Log
from agentkit.messages import ToolCall, assistant, system, tool_result, user
from agentkit.policies.aider import PREFIX, AiderRepoMap, read_folder
from agentkit.repomap import Weights, rank, repo_map, tags
from agentkit.repomap.graph import _edges, by_iteration, pagerank, personalisation
from agentkit.repomap.seen import files_seen
from agentkit.repomap.symbols import _by_ast, _by_tree_sitter, parser_name
from agentkit.repomap.text import render, sampled
from agentkit.tokens import PerScript
from policies.support import situation, step, texts, worked

SOURCE = '''LIMIT = 3


class Store:
    """Holds."""

    def save(self, item):
        check_item(item)
        return self.backend.write_item(item)


async def check_item(item):
    return Store().save(item)
'''

FILES = {
    "store.py": SOURCE,
    "main.py": "from store import Store\n\ndef run_main():\n    Store().save(1)\n    Store().save(2)\n",
    "other.py": "def lonely():\n    pass\n",
    "README.md": "# the project\n",
    "notes.txt": "nothing\n",
}
count = PerScript().text


def test_tags_are_what_is_defined_and_what_is_referred_to() -> None:
    found = {(t.line, t.name, t.kind) for t in tags("store.py", SOURCE)}
    assert {(1, "LIMIT", "def"), (4, "Store", "def"), (7, "save", "def"), (12, "check_item", "def")} <= found
    assert {(8, "check_item", "ref"), (9, "write_item", "ref"), (13, "Store", "ref"), (13, "save", "ref")} <= found
    assert len(found) == 8 and tags("a.ts", SOURCE) == ()


def test_python_s_own_parser_finds_the_same() -> None:
    assert parser_name() == "tree-sitter"
    for path in Path("agentkit/policies").glob("*.py"):
        text = path.read_text(encoding="utf-8")
        by_tree = {t for t in _by_tree_sitter("x.py", text) if t.kind == "def"}
        by_ast = {t for t in _by_ast("x.py", text) if t.kind == "def"}
        # A decorated definition begins at another line for neither of them; class attributes are no definitions for both.
        assert by_tree == by_ast, path.name
    assert list(_by_ast("x.py", "def broken(:")) == [] and any(_by_tree_sitter("x.py", "def fine(): pass\nx = = 1"))


def test_a_reference_counts_more_when_mentioned_telling_or_from_the_chat() -> None:
    files = {
        "a.py": "def save(): pass\ndef load_settings(): pass\ndef _hide(): pass\n",
        "b.py": "save()\nload_settings()\n_hide()\n",
    }
    found = {path: tags(path, text) for path, text in files.items()}

    def weight(name: str, **more: object) -> float:
        edges = _edges(found, more.get("chat", ()), more.get("mentioned", ()), Weights())  # type: ignore[arg-type]
        return next(w for source, _, n, w in edges if n == name and source == "b.py")

    assert weight("save") == 1.0 and weight("save", mentioned=["save"]) == 10.0 and weight("save", chat=["b.py"]) == 50.0
    assert weight("load_settings") == 10.0 and weight("_hide") == pytest.approx(0.1)
    alone = _edges({"a.py": tags("a.py", "def never(): pass\nfoo()")}, (), (), Weights())
    assert alone == [("a.py", "a.py", "never", 0.1)]
    no_references = _edges({"a.py": tags("a.py", "def never(): pass")}, (), (), Weights())
    assert no_references == [("a.py", "a.py", "never", 1.0)]


def test_the_root_is_taken_again_for_each_definer() -> None:
    files = {f"d{n}.py": "def thing(): pass\n" for n in range(3)} | {"use.py": "thing()\n" * 16}
    found = {path: tags(path, text) for path, text in files.items()}

    def weights(again: bool) -> list[float]:
        return [w for source, _, _, w in _edges(found, (), (), Weights(root_again=again)) if source == "use.py"]

    assert weights(True) == pytest.approx([4, 2, 2**0.5]) and weights(False) == [4, 4, 4]


def test_the_walk_starts_at_files_at_hand_and_at_what_the_user_named() -> None:
    start = personalisation(["a/store.py", "b.py", "c.py", "d.py"], ["b.py"], ["b.py", "c.py"], ["store", "b.py"])
    assert start == {"a/store.py": 25.0, "b.py": 50.0, "c.py": 25.0}


def test_rustworkx_and_plain_repetition_agree() -> None:
    edges = [("a", "b", "x", 3.0), ("a", "c", "y", 1.0), ("b", "c", "z", 2.0), ("c", "a", "x", 1.0), ("b", "d", "v", 0.5)]
    for start in ({}, {"a": 50.0}, {"b": 25.0, "d": 75.0}):
        fast, slow = pagerank(["a", "b", "c", "d"], edges, start), by_iteration(["a", "b", "c", "d"], edges, start)
        assert fast == pytest.approx(slow, abs=1e-4) and sum(fast.values()) == pytest.approx(1, abs=1e-4)
    assert pagerank([], [], {}) == {}


def test_what_the_files_at_hand_refer_to_ranks_first() -> None:
    found = {path: tags(path, text) for path, text in FILES.items()}
    symbols = rank(found, ["main.py"]).symbols
    assert {name for _, name in symbols[:3]} == {"Store", "save", "check_item"} and symbols[-1][1] in ("lonely", "LIMIT")
    assert rank(found, ["other.py"]).symbols[0] == ("other.py", "lonely")


def test_the_map_has_signatures_of_other_files_and_bare_names() -> None:
    text = repo_map(FILES, ["main.py"], count=count)
    assert "README.md" in text and "notes.txt" in text and "main.py" not in text
    assert (
        "store.py:\n│LIMIT = 3\n⋮\n│class Store:\n⋮\n│    def save(self, item):\n⋮\n│async def check_item(item):\n⋮" in text
    )
    assert '"""Holds."""' not in text and repo_map({}, count=count) == ""


def test_the_budget_holds_with_fifteen_percent_of_slack() -> None:
    body = "".join(f"def function_number_{n}(argument):\n    return helper_{n}(argument)\n\n" for n in range(60))
    files = {f"module_{n}.py": body for n in range(12)}
    size = sampled(count)
    sizes = {budget: size(repo_map(files, budget=budget, count=count)) for budget in (300, 1_024, 4_096)}
    assert all(0.5 * budget < tokens <= 1.15 * budget for budget, tokens in sizes.items()), sizes
    assert render({"a.py": "x" * 300}, [("a.py", 1)]) == "a.py:\n│" + "x" * 100


def test_a_long_text_is_counted_by_a_sample() -> None:
    text = "".join(f"line number {n}\n" for n in range(1_000))
    assert sampled(count)(text) == pytest.approx(count(text), rel=0.05) and sampled(count)("short") == count("short")


def read(path: str, text: str, number: int) -> list[object]:
    call = ToolCall(f"r{number}", "read_file", f'{{"path": "{path}"}}')
    numbered = "\n".join(f"{i}\t{line}" for i, line in enumerate(text.splitlines(), 1))
    return [assistant("", call), tool_result(call.id, numbered)]


def test_files_are_found_in_what_was_read_and_written() -> None:
    write = ToolCall("w", "write_file", '{"path": "./new.py", "content": "def new(): pass"}')
    messages = [*read("store.py", SOURCE, 1), assistant("", write), tool_result("w", "ok"), *worked(1)]
    assert files_seen(messages) == {
        "store.py": SOURCE.rstrip("\n"),
        "new.py": "def new(): pass",
        "f0.py": "line 0.0\nline 0.1\nline 0.2",
    }  # type: ignore[arg-type]


def folder(tmp_path: Path) -> Path:
    for path, text in FILES.items():
        (tmp_path / path).write_text(text, encoding="utf-8")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "x.py").write_text("def hidden(): pass\n", encoding="utf-8")
    (tmp_path / "picture.bin").write_bytes(b"\xff\xfe\x00")
    return tmp_path


def test_the_policy_puts_the_map_in_front_and_the_log_holds_it(tmp_path: Path) -> None:
    assert set(read_folder(folder(tmp_path))) == set(FILES)
    policy, log = AiderRepoMap(tmp_path), Log([system("rules"), user("look at Store")])
    assert step(policy, log, situation(1)) is None
    view = policy.view(log)
    assert [m.role for m in view] == ["system", "user", "assistant", "user"] and view[1].content.startswith(PREFIX)
    assert "class Store:" in view[1].content and view[3].content == "look at Store"
    (tmp_path / "store.py").unlink()
    assert AiderRepoMap(tmp_path).view(log) == view, "the view follows from the log, not from the files"
    size = len(log)
    step(policy, log, situation(1))
    assert len(log) == size + 1, "a file is gone, so the map is made anew"
    step(policy, log, situation(1))
    assert len(log) == size + 1, "nothing changed"


def test_auto_looks_at_the_words_and_files_does_not(tmp_path: Path) -> None:
    folder(tmp_path)

    def maps(refresh: str) -> list[str]:
        policy, log, found = AiderRepoMap(tmp_path, refresh=refresh), Log([system("rules")]), []  # type: ignore[arg-type]
        for question in ("look at Store", "look at lonely"):
            log.append(user(question))
            step(policy, log, situation(1))
            found.append(next(e.text for e in reversed(log.branch()) if e.kind == "note"))
            log.append(assistant("fine"))
        return found

    assert len(set(maps("auto"))) == 2 and len(set(maps("files"))) == 1
    with pytest.raises(ValueError, match="auto or files"):
        AiderRepoMap(refresh="always")  # type: ignore[arg-type]


def test_files_that_calls_named_are_at_hand_and_leave_the_map() -> None:
    policy = AiderRepoMap()
    log = Log([system("rules"), user("read")])
    for n, path in enumerate(("main.py", "store.py")):
        for message in read(path, FILES[path], n):
            log.append(message)  # type: ignore[arg-type]
        log.append(assistant("read"))
        for further in range(2 * n):
            log.append(user(f"and {further}"))
            log.append(assistant("yes"))
        log.append(user(f"next {n}"))
        step(policy, log, situation(1))
    shown = texts(policy.view(log))
    assert "run_main" not in "".join(shown[:1]) and len(policy.view(log)) == len(log.messages()) + 2


def test_without_files_at_hand_the_map_may_be_larger() -> None:
    assert [AiderRepoMap()._budget(window, has) for window, has in ((200_000, True), (200_000, False), (8_000, False))] == [
        1_024,
        8_192,
        3_904,
    ]
    assert [AiderRepoMap(map_tokens=None)._budget(n, True) for n in (4_000, 16_000, 200_000)] == [1_024, 2_000, 4_096]
