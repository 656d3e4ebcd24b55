"""What a ROS workspace gets from `colcon build`, and what pip gets: every file in its place."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

pytest.importorskip('colcon_core', reason='colcon is not installed (extra `colcon`)')

SOURCE = Path(__file__).resolve().parents[2]
PACKED = (
    *('package.xml', 'setup.py', 'setup.cfg', 'pyproject.toml', 'README.md', 'LICENSE'),
    *('contact_sim', 'launch', 'config', 'urdf', 'resource', 'scripts'),
)
EXECUTABLES = (
    *('simulation', 'stance_controller', 'balance_controller', 'trot_controller'),
    *('policy_controller', 'composed'),
)


def clean_environment():
    """Return an environment without the ROS workspaces, if any, that the caller has sourced."""
    sourced = ('PYTHONPATH', 'AMENT_PREFIX_PATH', 'COLCON_PREFIX_PATH', 'CMAKE_PREFIX_PATH')
    kept = {name: value for name, value in os.environ.items() if name not in sourced}
    return kept | {'PATH': os.pathsep.join([str(Path(sys.executable).parent), kept['PATH']])}


def run(command, folder, **environment):
    return subprocess.run(
        command,
        cwd=folder,
        env=clean_environment() | environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.fixture(scope='module')
def workspace(tmp_path_factory):
    """Return a colcon workspace in which this source tree has been built."""
    workspace = tmp_path_factory.mktemp('workspace')
    package = workspace / 'src' / 'contact_sim'
    package.mkdir(parents=True)
    for name in PACKED:
        if (SOURCE / name).is_dir():
            ignored = shutil.ignore_patterns('__pycache__')
            shutil.copytree(SOURCE / name, package / name, ignore=ignored)
        else:
            shutil.copy(SOURCE / name, package)
    build = run([sys.executable, '-m', 'colcon', 'build'], workspace)
    assert build.returncode == 0, build.stdout + build.stderr
    return workspace


@pytest.fixture(scope='module')
def prefix(workspace):
    return workspace / 'install' / 'contact_sim'


def installed_environment(prefix):
    (site_packages,) = prefix.glob('lib/python*/site-packages')
    return {'PYTHONPATH': str(site_packages), 'AMENT_PREFIX_PATH': str(prefix)}


def test_the_manifest_is_valid():
    from catkin_pkg.package import parse_package  # colcon-ros reads manifests with it

    warnings = []
    manifest = parse_package(str(SOURCE / 'package.xml'), warnings=warnings)
    manifest.validate()  # raises InvalidPackage
    assert warnings == []
    assert manifest.package_format == 3
    assert manifest.licenses == ['Apache-2.0']
    assert manifest.get_build_type() == 'ament_python'


@pytest.mark.parametrize('executable', EXECUTABLES)
def test_executables_are_where_ros2_run_looks(prefix, executable):
    path = prefix / 'lib' / 'contact_sim' / executable
    assert os.access(path, os.X_OK)


@pytest.mark.parametrize('folder', ['launch', 'config', 'urdf'])
def test_share_folders_are_installed_whole(prefix, folder):
    there = prefix / 'share/contact_sim'
    shipped, installed = (
        {
            path.relative_to(root)
            for path in (root / folder).rglob('*')
            if path.is_file() and '__pycache__' not in path.parts
        }
        for root in (SOURCE, there)
    )
    assert shipped
    assert installed == shipped


def test_the_package_is_in_the_ament_index(prefix):
    assert (prefix / 'share/ament_index/resource_index/packages/contact_sim').is_file()
    assert (prefix / 'share/contact_sim/package.xml').is_file()


def test_every_python_file_is_installed(prefix):
    (site_packages,) = prefix.glob('lib/python*/site-packages')
    sources = {path.relative_to(SOURCE) for path in (SOURCE / 'contact_sim').rglob('*.py')}
    assert {path for path in sources if not (site_packages / path).is_file()} == set()


def test_the_installed_copy_is_what_runs_and_it_finds_its_files(prefix, tmp_path):
    script = (
        'import contact_sim, contact_sim.robot._files as share;'
        'print(contact_sim.__file__);'
        'print(contact_sim.__version__);'
        "print(share.share_path('urdf'))"
    )
    result = run([sys.executable, '-c', script], tmp_path, **installed_environment(prefix))
    assert result.returncode == 0, result.stderr
    module, version, urdf = result.stdout.split()[-3:]
    assert Path(module).is_relative_to(prefix)
    assert version == ElementTree.parse(SOURCE / 'package.xml').findtext('version')
    assert Path(urdf).is_relative_to(prefix)


def test_executables_load_their_entry_points(prefix, tmp_path):
    """Loaded, not started: what they import, from the installed copy."""
    pytest.importorskip('rclpy', reason='the executables need ROS')
    script = ''
    for name in EXECUTABLES:
        text = (prefix / 'lib' / 'contact_sim' / name).read_text(encoding='utf-8')
        script += re.search(r'^from .* import (\w+)$', text, re.MULTILINE).expand(
            r'\g<0>\nprint(\g<1>.__code__.co_filename)\n'
        )
    result = run([sys.executable, '-c', script], tmp_path, **installed_environment(prefix))
    assert result.returncode == 0, result.stderr
    files = {Path(file) for file in result.stdout.split()[-len(EXECUTABLES) :]}
    assert len(files) == len(EXECUTABLES)
    assert all(file.is_relative_to(prefix) for file in files)
