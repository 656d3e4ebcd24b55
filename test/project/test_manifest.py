"""What rosdep, bloom and colcon read: package.xml, with keys that exist, and the changelog."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
MANIFESTS = [ROOT / 'package.xml', *sorted(ROOT.glob('examples/*/package.xml'))]
KNOWN = yaml.safe_load(Path(__file__).with_name('rosdep_keys.yaml').read_text(encoding='utf-8'))


def dependencies(manifest):
    """Return the keys that a package.xml names, in any kind of dependency."""
    root = ElementTree.parse(manifest).getroot()
    return {element.text.strip() for element in root if element.tag.endswith('depend')}


def name(manifest):
    return ElementTree.parse(manifest).getroot().findtext('name').strip()


def known_keys():
    return {*KNOWN['released'], *(key for keys in KNOWN['rosdep'].values() for key in keys)}


def version():
    return ElementTree.parse(ROOT / 'package.xml').getroot().findtext('version').strip()


@pytest.mark.parametrize('manifest', MANIFESTS, ids=name)
def test_rosdep_knows_every_key(manifest):
    ours = {name(other) for other in MANIFESTS}
    assert dependencies(manifest) - ours - known_keys() == set()


def test_no_key_is_listed_that_nobody_uses():
    assert known_keys() <= set().union(*map(dependencies, MANIFESTS))


def test_what_is_released_is_so_for_every_distribution():
    """Jazzy, Kilted, Lyrical and Rolling."""
    for versions in KNOWN['released'].values():
        assert len(versions) == 4
        assert all(re.fullmatch(r'\d+\.\d+\.\d+-\d+', version) for version in versions)


def test_the_entry_for_rosdistro_is_of_this_version():
    text = (ROOT / 'CONTRIBUTING.md').read_text(encoding='utf-8')
    (block,) = re.findall(r'```yaml\n(contact_sim:.*?)```', text, re.DOTALL)
    entry = yaml.safe_load(block)['contact_sim']
    assert entry['release']['version'] == f'{version()}-1'
    assert entry['release'].keys() == {'tags', 'url', 'version'}
    assert entry['source'].keys() >= {'type', 'url', 'version'}


def test_the_plugin_that_has_no_key_is_not_needed(pytestconfig, request):
    """The flaky marker is of pytest-rerunfailures: where that is missing, no test may bear it."""
    repeats = pytestconfig.pluginmanager.hasplugin('rerunfailures')
    flaky = [item for item in request.session.items if item.get_closest_marker('flaky')]
    assert repeats or not flaky


@pytest.mark.filterwarnings('ignore:nodes.Node.traverse')  # catkin_pkg calls docutils so
def test_bloom_reads_the_changelog():
    """The newest released section is of the version, and no entry is lost."""
    catkin = pytest.importorskip('catkin_pkg.changelog', reason='comes with the extra colcon')
    text = (ROOT / 'CHANGELOG.rst').read_text(encoding='utf-8')
    read = catkin.populate_changelog_from_rst(catkin.Changelog('contact_sim'), text)
    versions = [number for number, _, _ in read.foreach_version()]
    sections = re.findall(r'^(.*)\n-{8,}$', text, re.MULTILINE)
    if sections[0] == 'Forthcoming':
        del sections[0]
    assert [section.split(' (')[0] for section in sections] == versions
    assert versions[0] == version()
    lists = [
        part
        for _, _, parts in read.foreach_version()
        for part in parts
        if isinstance(part, catkin.BulletList)
    ]
    released = text[text.index(sections[0]) :]
    assert sum(len(part.bullets) for part in lists) == len(re.findall(r'^\* ', released, re.M))


def test_the_citation_is_of_the_version():
    citation = yaml.safe_load((ROOT / 'CITATION.cff').read_text(encoding='utf-8'))
    assert citation['version'] == version()
    heading = f'{version()} ({citation["date-released"]})'
    assert heading in (ROOT / 'CHANGELOG.rst').read_text(encoding='utf-8').splitlines()
