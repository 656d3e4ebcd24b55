"""The rules that keep the code readable, each checked on every file."""

from __future__ import annotations

import ast
import graphlib
import re
import subprocess
import sys
from functools import cache
from importlib import metadata
from pathlib import Path
from xml.etree import ElementTree

import grimp
import pytest
from importlinter.cli import lint_imports

import contact_sim

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / 'contact_sim'
SOURCES = sorted(PACKAGE.rglob('*.py'))
SHIPPED = [*SOURCES, *sorted(ROOT.glob('launch/*.py'))]

ROSDEP_KEYS = {
    'matplotlib': 'python3-matplotlib',
    'numba': 'python3-numba',
    'numpy': 'python3-numpy',
    'PIL': 'python3-pil',
    'pytest': 'python3-pytest',
    'scipy': 'python3-scipy',
    'tqdm': 'python3-tqdm',
    'yaml': 'python3-yaml',
}
"""Keys whose name is not the module's name."""
DISTRIBUTIONS = {'coal': ['coal'], 'pinocchio': ['pin']}
"""Modules that importlib.metadata cannot trace: cmeel packages live in a prefix of their own."""


@cache
def tree(path):
    return ast.parse(path.read_text(encoding='utf-8'), str(path))


def where(path, node):
    return f'{path.relative_to(ROOT)}:{node.lineno}'


def functions(path):
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [node for node in ast.walk(tree(path)) if isinstance(node, kinds)]


def is_kernel(function):
    names = {ast.unparse(decorator) for decorator in function.decorator_list}
    return not names.isdisjoint({'kernel', 'entry', 'stage_on_demand'})


def test_import_contracts_are_kept(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    assert lint_imports(no_cache=True) == 0, capsys.readouterr().out


def test_no_circular_imports():
    graph = grimp.build_graph('contact_sim', cache_dir=None)
    imported = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    assert len(imported) == len(SOURCES)
    graphlib.TopologicalSorter(imported).prepare()  # raises CycleError, which names the cycle


def public_nodes(node, inside=''):
    """Yield (dotted name, node) of the public classes, functions and methods under `node`."""
    for child in node.body:
        if isinstance(child, ast.ClassDef | ast.FunctionDef) and not child.name.startswith('_'):
            yield inside + child.name, child
        if isinstance(child, ast.ClassDef) and not child.name.startswith('_'):
            yield from public_nodes(child, f'{inside}{child.name}.')


def documented_elsewhere(node):
    """Setters are documented by their property, overloads by what they overload."""
    decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
    return any(name.endswith(('.setter', 'overload')) for name in decorators)


@pytest.mark.parametrize('path', SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_public_names_are_documented(path):
    missing = [
        f'{where(path, node)} {name}'
        for name, node in public_nodes(tree(path))
        if ast.get_docstring(node) is None and not documented_elsewhere(node)
    ]
    assert missing == []
    assert ast.get_docstring(tree(path)), f'{path} has no docstring'


@pytest.mark.parametrize('path', SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_public_functions_are_annotated(path):
    """Kernels are not: numba compiles them for the types of their arguments."""
    missing = []
    for name, node in public_nodes(tree(path)):
        if isinstance(node, ast.ClassDef) or is_kernel(node):
            continue
        arguments = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
        bare = [a.arg for a in arguments if a.annotation is None and a.arg not in ('self', 'cls')]
        if bare or node.returns is None:
            missing.append(f'{where(path, node)} {name}: {", ".join(bare) or "return type"}')
    assert missing == []


def test_the_core_loads_neither_ros_nor_plots_nor_other_engines():
    unwanted = {'rclpy', 'matplotlib', 'mujoco', 'pydrake', 'ament_index_python', 'launch'}
    script = 'import sys, contact_sim; print(*sys.modules)'
    result = subprocess.run([sys.executable, '-c', script], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert unwanted.isdisjoint(result.stdout.split())


def test_the_public_names_exist():
    assert [name for name in contact_sim.__all__ if not hasattr(contact_sim, name)] == []


def test_the_version_is_written_once():
    declared = ElementTree.parse(ROOT / 'package.xml').findtext('version')
    assert contact_sim.__version__ == declared
    assert metadata.version('contact_sim') == declared
    python_files = [*SOURCES, ROOT / 'setup.py']
    written = [path for path in python_files if declared in path.read_text(encoding='utf-8')]
    assert written == []


def imports(path):
    """Yield (top-level module, whether a missing module is caught) of every import of a file."""
    caught = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Try) and any(catches_missing(h) for h in node.handlers):
            caught |= {id(inner) for statement in node.body for inner in ast.walk(statement)}
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [node.module]
        else:
            continue
        for name in names:
            yield name.partition('.')[0], id(node) in caught


def catches_missing(handler):
    text = ast.unparse(handler.type) if handler.type is not None else 'ImportError'
    return 'ImportError' in text or 'ModuleNotFoundError' in text


def third_party_imports():
    """Return {module: files that need it}, without the standard library and optional imports."""
    needed = {}
    for path in SHIPPED:
        for module, optional in imports(path):
            known = module in sys.stdlib_module_names or module == 'contact_sim'
            if not known and not optional:
                needed.setdefault(module, []).append(str(path.relative_to(ROOT)))
    return needed


def normalised(requirement):
    """Return the distribution's name in 'Foo_bar>=1; extra == "x"' as 'foo-bar'."""
    return re.split(r'[^A-Za-z0-9._-]', requirement, maxsplit=1)[0].lower().replace('_', '-')


def test_third_party_imports_are_declared_to_pip():
    declared = {normalised(line) for line in metadata.requires('contact_sim')}
    providers = metadata.packages_distributions()
    provided_by_ros_only = {'launch', 'launch_ros'}  # no wheels
    missing = {
        module: files
        for module, files in third_party_imports().items()
        if module not in provided_by_ros_only
        and not any(
            {normalised(name), f'ros-{normalised(name)}'} & declared
            for name in DISTRIBUTIONS.get(module, providers.get(module, []))
        )
    }
    assert missing == {}


def test_third_party_imports_are_declared_to_rosdep():
    declared = {
        element.text
        for element in ElementTree.parse(ROOT / 'package.xml').getroot()
        if element.tag.endswith('depend')
    }
    without_key = {'viser'}  # of pip alone; who starts the viewer without it is told so
    missing = {
        module: files
        for module, files in third_party_imports().items()
        if module not in without_key and ROSDEP_KEYS.get(module, module) not in declared
    }
    assert missing == {}
