"""Where shipped files are found: ament index, Python environment, source tree."""

import sys
from pathlib import Path

import pytest

from contact_sim.errors import InvalidInput
from contact_sim.robot import _files

SOURCE = Path(_files.__file__).parents[2]


@pytest.fixture
def ament(monkeypatch):
    """Return a function that makes the ament index answer with a folder, or raise."""

    def answer(result):
        class Packages:
            @staticmethod
            def get_package_share_directory(name):
                assert name == 'contact_sim'
                if isinstance(result, Exception):
                    raise result
                return str(result)

        monkeypatch.setitem(sys.modules, 'ament_index_python', Packages)
        monkeypatch.setitem(sys.modules, 'ament_index_python.packages', Packages)

    return answer


def write(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('x')
    return path


def test_the_ament_index_comes_first(ament, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, 'prefix', str(tmp_path / 'venv'))
    write(tmp_path / 'venv/share/contact_sim/urdf/quadruped.srdf')
    installed = write(tmp_path / 'ros/urdf/quadruped.srdf')
    ament(tmp_path / 'ros')
    assert _files.share_path('urdf', 'quadruped.srdf') == installed


@pytest.mark.parametrize(
    'error', [LookupError('not there'), OSError('not set'), ImportError('no')]
)
def test_then_the_python_environment(ament, tmp_path, monkeypatch, error):
    monkeypatch.setattr(sys, 'prefix', str(tmp_path))
    installed = write(tmp_path / 'share/contact_sim/urdf/quadruped.srdf')
    ament(error)
    assert _files.share_path('urdf', 'quadruped.srdf') == installed


def test_then_the_source_tree(ament, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, 'prefix', str(tmp_path))
    ament(tmp_path / 'an older one without the file')
    assert _files.share_path('urdf', 'quadruped.srdf') == SOURCE / 'urdf' / 'quadruped.srdf'
    assert _files.share_path('urdf') == SOURCE / 'urdf'


def test_a_missing_file_names_the_folders():
    with pytest.raises(InvalidInput) as caught:
        _files.share_path('config', 'nothing.yaml')
    message = str(caught.value)
    assert "contact_sim has no file 'config/nothing.yaml'; searched in" in message
    assert str(SOURCE) in message


def test_share_folders_lists_workspaces_first(tmp_path, monkeypatch):
    first, second = tmp_path / 'a', tmp_path / 'b'
    for prefix in (first, second):
        (prefix / 'share').mkdir(parents=True)
    monkeypatch.setenv('AMENT_PREFIX_PATH', f'{first}:{second}:{tmp_path / "gone"}')
    folders = _files.share_folders()
    assert folders[:2] == (first / 'share', second / 'share')
    assert all(folder.is_dir() for folder in folders)


def test_cmeel_packages_are_found(tmp_path, monkeypatch):
    (tmp_path / 'cmeel.prefix' / 'share').mkdir(parents=True)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert tmp_path / 'cmeel.prefix' / 'share' in _files.share_folders()
