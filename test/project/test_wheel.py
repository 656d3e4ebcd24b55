"""What pip gets: sdist and wheel with every file and no other, and what they install."""

import os
import re
import shutil
import site
import subprocess
import sys
import tarfile
import zipfile
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree

import pytest

SOURCE = Path(__file__).resolve().parents[2]
VERSION = ElementTree.parse(SOURCE / 'package.xml').findtext('version')
TOP = ('package.xml', 'setup.py', 'setup.cfg', 'pyproject.toml', 'README.md', 'LICENSE')
SHARED = ('launch', 'config', 'urdf')
EXECUTABLES = (
    *('simulation', 'stance_controller', 'balance_controller', 'trot_controller'),
    *('policy_controller', 'composed'),
)
SCRIPTS = {f'scripts/{name}' for name in EXECUTABLES}
DATA = f'contact_sim-{VERSION}.data/data/share'

pytestmark = pytest.mark.skipif(
    find_spec('setuptools') is None or find_spec('wheel') is None,
    reason='building without a network takes setuptools and wheel',
)


def run(*command, folder):
    """Return what a program printed; it sees neither this source tree nor a ROS workspace."""
    hidden = ('PYTHONPATH', 'PYTHONHOME', 'AMENT_PREFIX_PATH', 'COLCON_PREFIX_PATH')
    kept = {name: value for name, value in os.environ.items() if name not in hidden}
    result = subprocess.run(
        command, cwd=folder, env=kept, capture_output=True, text=True, timeout=120
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def built(kind, tree, into):
    """Return the sdist or wheel of a source tree, made as pip makes it."""
    script = f'from setuptools.build_meta import build_{kind} as b; b({str(into)!r})'
    run(sys.executable, '-c', script, folder=tree)
    (archive,) = into.iterdir()
    return archive


def sources():
    """Return the Python files of the package."""
    return {str(p.relative_to(SOURCE)) for p in (SOURCE / 'contact_sim').rglob('*.py')}


def shared():
    """Return the files that go into share/contact_sim."""
    there = (path for folder in SHARED for path in (SOURCE / folder).rglob('*') if path.is_file())
    files = {str(path.relative_to(SOURCE)) for path in there if '__pycache__' not in path.parts}
    return files | {'package.xml'}


@pytest.fixture(scope='module')
def sdist(tmp_path_factory):
    """Return the sdist of a checkout, which has tests and benchmarks besides."""
    tree, into = tmp_path_factory.mktemp('tree'), tmp_path_factory.mktemp('sdist')
    ignored = shutil.ignore_patterns('__pycache__', '*.egg-info', 'out')
    others = ('resource', 'scripts', 'contact_sim', 'test', 'benchmarks', 'examples')
    for name in (*TOP, *others, *SHARED):
        source = SOURCE / name
        copy = shutil.copytree if source.is_dir() else shutil.copy
        copy(source, tree / name, **({'ignore': ignored} if source.is_dir() else {}))
    return built('sdist', tree, into)


@pytest.fixture(scope='module')
def wheel(sdist, tmp_path_factory):
    """Return the wheel that is built from the sdist."""
    tree, into = tmp_path_factory.mktemp('unpacked'), tmp_path_factory.mktemp('wheel')
    with tarfile.open(sdist) as archive:
        archive.extractall(tree)
    return built('wheel', tree / f'contact_sim-{VERSION}', into)


@pytest.fixture(scope='module')
def installed(wheel, tmp_path_factory):
    """Return an environment with the wheel, and with the dependencies of this one behind it."""
    prefix = tmp_path_factory.mktemp('installed') / 'venv'
    run(sys.executable, '-m', 'venv', '--without-pip', str(prefix), folder=prefix.parent)
    pip = (sys.executable, '-m', 'pip', '--python', str(prefix / 'bin' / 'python'))
    run(*pip, 'install', '--quiet', '--no-deps', '--no-index', str(wheel), folder=prefix.parent)
    (packages,) = prefix.glob('lib/python*/site-packages')
    borrowed = [f'import site; site.addsitedir({path!r})' for path in site.getsitepackages()]
    (packages / 'zz_dependencies.pth').write_text('\n'.join(borrowed) + '\n')
    return prefix


def test_the_sdist_holds_the_package_and_no_tests(sdist):
    with tarfile.open(sdist) as archive:
        names = {m.name.partition('/')[2] for m in archive.getmembers() if m.isfile()}
    made = {name for name in names if name.startswith('contact_sim.egg-info/')} | {'PKG-INFO'}
    assert names - made == sources() | shared() | SCRIPTS | {*TOP, 'resource/contact_sim'}


def test_the_wheel_holds_the_package_and_no_other_file(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    made = {name for name in names if name.startswith(f'contact_sim-{VERSION}.dist-info/')}
    index = 'ament_index/resource_index/packages/contact_sim'
    data = {f'{DATA}/{path}' for path in (index, *(f'contact_sim/{name}' for name in shared()))}
    programs = {f'{Path(DATA).parent}/lib/contact_sim/{name}' for name in EXECUTABLES}
    assert names - made == sources() | data | programs


def test_the_wheel_shows_the_readme_and_needs_no_robots_of_others(wheel):
    with zipfile.ZipFile(wheel) as archive:
        metadata = archive.read(f'contact_sim-{VERSION}.dist-info/METADATA').decode()
    assert (SOURCE / 'README.md').read_text(encoding='utf-8').strip() in metadata
    needed = re.findall(r'^Requires-Dist: ([\w-]+)[^;\n]*$', metadata, re.MULTILINE)
    assert {'pin', 'numpy', 'numba'} <= set(needed)
    assert 'example-robot-data' not in needed


def test_the_installed_package_finds_its_files(installed):
    script = (
        'import contact_sim\n'
        'from contact_sim.robot._files import share_path\n'
        'print(contact_sim.__version__)\n'
        'print(contact_sim.load_robot("quadruped").n_joints)\n'
        'print(contact_sim.__file__)\n'
        f'for name in {SHARED}: print(share_path(name))\n'
    )
    version, joints, *paths = run(
        str(installed / 'bin' / 'python'), '-c', script, folder=installed.parent
    ).splitlines()
    assert (version, joints) == (VERSION, '12')
    assert len(paths) == 1 + len(SHARED)
    assert all(Path(path).is_relative_to(installed) for path in paths)


def test_the_commands_are_installed(installed):
    """One in bin/, called like the package; those of ROS where ros2 run looks."""
    programs = installed / 'lib' / 'contact_sim'
    assert all(os.access(programs / name, os.X_OK) for name in EXECUTABLES)
    assert not any((installed / 'bin' / name).exists() for name in EXECUTABLES)
    listed = run(str(installed / 'bin' / 'contact_sim'), folder=installed.parent)
    assert 'contact_sim view go1' in listed
    said = run(
        *(str(installed / 'bin' / 'python'), '-m', 'contact_sim.compare', '--help'),
        folder=installed.parent,
    )
    assert '--scenario' in said
