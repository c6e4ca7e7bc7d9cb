"""`agentkit book`: run the chapters and write their outputs back, the way strict nbval wants them.

No timing, no widget state, execution counts 1 to n. A cell tagged `widget` is run but stored without output: a saved widget
would show "model not found" to the next reader.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agentkit.scenarios import course_workspace


class ChapterFailed(RuntimeError):
    """A chapter does not run; the text names the chapter and the error."""


def chapters(names: Sequence[str] = ()) -> list[Path]:
    """Return the notebooks of the book in order, or those named. Raises `FileNotFoundError` for a name that is none."""
    folder = course_workspace().parent
    if not names:
        return sorted(folder.glob("*.ipynb"))
    paths = [Path(n) if Path(n).is_file() else folder / n for n in names]
    for path in paths:
        if not path.is_file():
            raise FileNotFoundError(f"no chapter {path.name}; there are {', '.join(p.name for p in chapters())}")
    return paths


def refresh(path: Path, timeout: int = 60) -> bool:
    """Run one notebook in a fresh kernel, store its outputs, and say whether the file changed.

    Raises `ChapterFailed` when a cell fails that is not tagged `raises-exception`; the file is then as before.
    """
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError

    before = path.read_text(encoding="utf-8")
    notebook = nbformat.reads(before, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=timeout,
        kernel_name="python3",
        resources={"metadata": {"path": str(path.parent)}},
        record_timing=False,
        # Else what one cell prints is stored in pieces, cut by the clock.
        coalesce_streams=True,
    )
    try:
        client.execute()
    except (CellExecutionError, CellTimeoutError) as error:
        raise ChapterFailed(f"{path.name}: a cell failed: {str(error).strip().splitlines()[-1]}") from None
    clean(notebook)
    after = nbformat.writes(notebook, version=4) + "\n"
    if after != before:
        path.write_text(after, encoding="utf-8", newline="\n")
    return after != before


def clean(notebook: Any) -> None:
    """Leave only what a reader needs: outputs, counts in order, and the two lines of metadata that a kernel needs."""
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    count = 0
    for number, cell in enumerate(notebook.cells):
        tags = cell.metadata.get("tags", [])
        cell.metadata = {"tags": tags} if tags else {}
        cell["id"] = f"cell-{number:02d}"
        if cell.cell_type != "code":
            continue
        if "widget" in tags:
            cell.outputs, cell.execution_count = [], None
            continue
        count += 1
        cell.execution_count = count
        cell.outputs = _merged(cell.outputs)
        for output in cell.outputs:
            if "execution_count" in output:
                output["execution_count"] = count
            if "traceback" in output:
                # A traceback names folders of this machine, and nbval compares only the error itself.
                output["traceback"] = [f"{output['ename']}: {output['evalue']}"]


def _merged(outputs: Sequence[Any]) -> list[Any]:
    """Join neighbouring pieces of one stream: where the kernel happened to flush must not show in a diff."""
    joined: list[Any] = []
    for output in outputs:
        last = joined[-1] if joined else None
        if last is not None and output.output_type == last.output_type == "stream" and output.name == last.name:
            last.text += output.text
        else:
            joined.append(output)
    return joined
