"""Floors import downward only, light floors import nothing heavy, and files and functions stay short."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "lvit_dense"
FLOORS = {
    "discovery": -1, "catalog": 0, "operators": 1, "vit": 2, "transfer": 3, "distill": 4, "models": 5, "datasets": 5,
    "engine": 6, "experiment": 7,
}  # fmt: skip
HEAVY = {"mmengine", "mmcv", "mmdet", "mmseg"}
MODULES = sorted(PACKAGE.rglob("*.py"))


def floor_of(path: Path) -> int:
    return FLOORS[path.relative_to(PACKAGE).parts[0].removesuffix(".py")]


def imports(tree: ast.AST):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: relative import"
            yield from ((f"{node.module}.{alias.name}", node) for alias in node.names)


def test_every_module_has_a_floor_and_there_are_many():
    assert len(MODULES) > 30
    assert {p.name for p in PACKAGE.iterdir() if p.suffix == ".py" or (p / "__init__.py").exists()} >= {"catalog.py"}
    for path in MODULES:
        if path != PACKAGE / "__init__.py":
            floor_of(path)


@pytest.mark.parametrize(
    "path", [p for p in MODULES if p != PACKAGE / "__init__.py"], ids=lambda p: str(p.relative_to(PACKAGE))
)
def test_imports_go_downward(path):
    for name, node in imports(ast.parse(path.read_text())):
        root, *rest = name.split(".")
        if root == "lvit_dense":
            assert rest and rest[0] in FLOORS, f"{path}:{node.lineno} imports {name}"
            assert FLOORS[rest[0]] <= floor_of(path), f"{path}:{node.lineno} imports {name} from a higher floor"
            own = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
            assert rest[0] == own or FLOORS[rest[0]] < floor_of(path), f"{path}:{node.lineno}: {name} is a neighbour"
        if floor_of(path) <= 4:
            assert root not in HEAVY, f"{path}:{node.lineno} imports {name} on a light floor"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_files_and_functions_are_short(path):
    text = path.read_text()
    assert len(text.splitlines()) <= 300, f"{path} has {len(text.splitlines())} lines"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            # the signature and docstring of a constructor with documented arguments do not count
            body = node.body[1:] if ast.get_docstring(node) else node.body
            length = (node.end_lineno - body[0].lineno + 1) if body else 0
            assert length <= 50, f"{path}:{node.lineno} {node.name} has a body of {length} lines"
