"""docs/explore.ipynb runs as it is, on a lake of the recorded incidents, and is stored without outputs."""

import ast
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.pipeline.mart_lakes import PACKETS, incidents
from tests.support.incidents import logged_outcomes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOTEBOOK = json.loads((Path(__file__).parents[2] / "docs" / "explore.ipynb").read_text(encoding="utf-8"))
CODE = [cell for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]
_SHOWN = "_shown"


def test_outputs_are_stripped() -> None:
    assert NOTEBOOK["nbformat"] == 4
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in CODE)
    assert len({cell["id"] for cell in NOTEBOOK["cells"]}) == len(NOTEBOOK["cells"])


def run(cells: list[dict[str, Any]]) -> dict[str, Any]:
    """What Jupyter would show of each cell, the value of its last expression, by the cell's id."""
    names: dict[str, Any] = {"__name__": "__main__"}
    shown = {}
    for cell in cells:
        tree = ast.parse("".join(cell["source"]), cell["id"])
        last = tree.body[-1]
        if isinstance(last, ast.Expr):
            target = ast.copy_location(ast.Name(_SHOWN, ast.Store()), last)
            tree.body[-1] = ast.copy_location(ast.Assign([target], last.value), last)
        exec(compile(tree, cell["id"], "exec"), names)
        if _SHOWN in names:
            shown[cell["id"]] = names.pop(_SHOWN)
    return shown


def test_every_cell_runs_and_shows_rows(
    spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lake").symlink_to(incidents(spark, tmp_path_factory, PACKETS))
    monkeypatch.chdir(tmp_path)
    shown = run(CODE)
    assert [*shown] == [cell["id"] for cell in CODE if cell["id"] != "setup"]
    charts = {name: value for name, value in shown.items() if hasattr(value, "_repr_svg_")}
    assert len(charts) == 2
    assert all(chart._repr_svg_().count("<rect ") == len(chart.rows) > 1 for chart in charts.values())
    assert all(len(value) > 0 for name, value in shown.items() if name not in charts)
    assert len(shown["captures"]) == 4 and len(shown["dimensions"]) == 14
    assert sum(shown["deliveries"]["records"]) == len(logged_outcomes())
