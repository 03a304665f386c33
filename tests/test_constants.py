"""A public constant has one meaning: no two modules give the same name different values."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parents[1] / "src" / "kafkascope"
# Modules of one kind each define these, and are read as `module.NAME`.
INTERFACES = {
    "COUNTED_SIGHTINGS", "DERIVED", "KIND", "QUERY", "READ", "RULES", "SIGHTINGS", "STATEMENT", "SUMS", "TABLES",
}  # fmt: skip


def value_of(node: ast.expr) -> Any:
    """The value of a literal, else the source of the expression."""
    try:
        return ast.literal_eval(node)
    except ValueError:
        return ast.unparse(node)


def unpacked(node: ast.expr, count: int) -> list[Any]:
    """The values of `a, b = node`."""
    if isinstance(node, ast.Tuple):
        return [value_of(element) for element in node.elts]
    is_range = isinstance(node, ast.Call) and ast.unparse(node.func) == "range"
    return list(range(count)) if is_range else [ast.unparse(node)] * count


def constants(tree: ast.Module) -> Iterator[tuple[str, Any]]:
    for node in tree.body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if isinstance(target, ast.Tuple):
                pairs = list(zip(target.elts, unpacked(node.value, len(target.elts)), strict=True))
            else:
                pairs = [(target, value_of(node.value))]
            for name, value in pairs:
                if isinstance(name, ast.Name) and name.id.isupper() and not name.id.startswith("_"):
                    yield name.id, value


def test_public_constants_of_one_name_have_one_value() -> None:
    values: dict[str, list[tuple[str, Any]]] = defaultdict(list)
    for path in sorted(SOURCE.rglob("*.py")):
        for name, value in constants(ast.parse(path.read_text(encoding="utf-8"))):
            values[name].append((path.relative_to(SOURCE).as_posix(), value))
    assert len(values) > 500
    different = {
        name: [module for module, _ in places]
        for name, places in values.items()
        if name not in INTERFACES and any(value != places[0][1] for _, value in places)
    }
    assert different == {}
