"""What `make docs` is made of: docstrings, links to sources, formulas, the picture of a step."""

import ast
import re

import pytest
import yaml
from markdown_pages import DOCS, ROOT, blocks, pages

import contact_sim
from contact_sim.contact_models import _stages

pytest.importorskip('sphinx', reason="the site needs Sphinx: pip install 'contact_sim[docs]'")

import docstrings
import repository
import step_figure
from docutils.core import publish_parts
from docutils.utils.math.latex2mathml import tex2mathml


@pytest.mark.parametrize(
    ('written', 'expected'),
    [
        ('a * b * c, *args, |x| and |y|, v_ and w_', None),
        (r'exp(-x)\n', None),
        ('Call `step`, then `a + b`.', 'Call :py:obj:`step <step>`, then ``a + b``.'),
        ('`Region`s', ':py:obj:`Region <Region>`\\ s'),
        ('`models()` and ``two * x``', ':py:obj:`models() <models>` and ``two * x``'),
        ('`over two\n    lines`', '``over two lines``'),
    ],
)
def test_docstrings_are_shown_as_they_are_written(written, expected):
    found = docstrings.as_rst(written)
    if expected is not None:
        assert found == expected
        return
    settings = {'report_level': 1, 'halt_level': 2}
    page = publish_parts(found, writer='html5', settings_overrides=settings)['body']
    assert re.sub(r'<[^>]*>', '', page).strip() == written


def test_links_to_files_of_the_repository_are_told_from_links_to_pages():
    def path(docname, target):
        return repository.linked_path(ROOT, docname, target)

    assert path('architecture', '../contact_sim/errors.py') == 'contact_sim/errors.py'
    assert path('theory/judge', '../../contact_sim/errors.py#L3') == 'contact_sim/errors.py'
    assert path('textbook', '../examples/textbook') == 'examples/textbook'
    assert path('quick_start', str(ROOT / 'README')) == 'README.md'  # as MyST gives it
    assert path('architecture', 'theory/judge.md') is None
    assert path('architecture', '../contact_sim/nothing.py') is None
    assert path('architecture', '../../elsewhere.py') is None
    assert path('architecture', '../..') is None


@pytest.mark.parametrize('name', ['Simulator', 'Simulator.step', 'Simulator.friction', 'robots'])
def test_the_source_of_an_entry_is_found(name):
    place = repository.place_of('py', {'module': 'contact_sim', 'fullname': name})
    path, line = place.removeprefix(repository.SCHEME).split('#L-')
    shown = (ROOT / path).read_text(encoding='utf-8').splitlines()[int(line) - 1 :][:3]
    assert re.search(rf'(def|class) {name.rpartition(".")[2]}\b', '\n'.join(shown))


def test_there_is_no_source_of_what_is_not_ours():
    for module, name in (('contact_sim', 'nothing'), ('contact_sim.contact', 'np.zeros')):
        assert repository.place_of('py', {'module': module, 'fullname': name}) is None


def test_formulas_are_read_without_a_network():
    """MathML is made when the site is built; docutils knows less TeX than a code host."""
    formulas = [
        block.text for page in pages() for block in blocks(page) if block.language == 'math'
    ]
    assert len(formulas) > 50
    for formula in formulas:
        assert tex2mathml(formula, as_block=True).startswith('<math')


def test_the_picture_of_a_step_is_that_of_the_code():
    assert (DOCS / 'step.svg').read_text(encoding='utf-8') == step_figure.drawing()
    names = [name for name, *_ in step_figure.STAGES]
    assert set(step_figure.AGAIN) <= set(names)
    source = (ROOT / 'contact_sim/contact_models/_stages.py').read_text(encoding='utf-8')
    step = source[source.index('def advance(') :]
    called = re.findall(r'\b(?!before_)(\w+)\(data\)', step[: step.index('\n\n\n')])
    last = names.pop()
    assert called == [name.replace('<law>', 'law') for name in names]
    parts = set(getattr(_stages, last).py_func.__code__.co_names) & vars(_stages).keys()
    at_the_end = _stages.integrate.py_func.__code__.co_names
    assert parts - {'integers', 'vector', 'f'} <= set(at_the_end), 'integrate ends with them'


def test_the_api_reference_has_every_room_that_exports_names():
    listed = (DOCS / 'api/index.rst').read_text(encoding='utf-8')
    for path in (ROOT / 'contact_sim').glob('*/__init__.py'):
        if '__all__' in path.read_text(encoding='utf-8'):
            own_page = DOCS / 'api' / f'{path.parent.name}.rst'
            pattern = rf'^   contact_sim\.{path.parent.name}$'
            assert own_page.exists() or re.search(pattern, listed, re.MULTILINE), path
    assert contact_sim.__all__


def test_what_the_pages_import_is_in_the_api_reference():
    pages_of_api = sorted((DOCS / 'api').glob('*.rst'))
    listed = {
        line.strip()
        for path in pages_of_api
        for line in path.read_text(encoding='utf-8').splitlines()
    }
    texts = [
        block.text for page in pages() for block in blocks(page) if block.language == 'python'
    ]
    texts += [
        path.read_text(encoding='utf-8') for path in (ROOT / 'examples/gallery').glob('*.py')
    ]
    used = {
        (node.module, name.name)
        for text in texts
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom) and node.module.startswith('contact_sim')
        for name in node.names
    }
    assert len(used) > 30
    assert {
        (m, name) for m, name in used if m not in listed and f'{m}.{name}' not in listed
    } == set()


def test_the_ros_index_builds_the_same_site():
    _, settings = yaml.safe_load_all((ROOT / 'rosdoc2.yaml').read_text(encoding='utf-8'))
    ((_, sphinx),) = settings['builders'][0].items()
    folder = ROOT / sphinx['sphinx_sourcedir']
    assert (folder / 'conf.py').is_file()
    assert (folder / 'index.rst').is_file()  # index.md would lose against one that rosdoc2 writes
