"""Settings of the documentation site: `make docs`, or rosdoc2 with rosdoc2.yaml.

Everything a page needs is in the site: it is read without a network.
"""

import ast
import os
import sys
from pathlib import Path
from xml.etree import ElementTree

HERE = Path(__file__).resolve().parent


def repository_root():
    """Return the root of the repository; rosdoc2 builds a copy of docs/ that lies elsewhere."""
    for place in map(Path, (HERE, *sys.path, Path.cwd())):
        for folder in (place, *place.parents):
            if (folder / 'package.xml').is_file() and (folder / 'contact_sim').is_dir():
                return folder
    raise FileNotFoundError(f'no package.xml beside contact_sim/ above {HERE} or {Path.cwd()}')


ROOT = repository_root()
sys.path[:0] = [str(HERE / 'extensions'), str(ROOT)]

from repository import place_of as linkcode_resolve  # noqa: E402, F401

EXPORTS = ROOT / 'contact_sim' / '__init__.py'
for node in ast.parse(EXPORTS.read_text(encoding='utf-8')).body:
    if isinstance(node, ast.Assign) and node.targets[0].id == '__all__':
        EXPORTED = ast.literal_eval(node.value)  # of contact_sim itself
MANIFEST = ElementTree.parse(ROOT / 'package.xml').getroot()
project = MANIFEST.findtext('name')
author = MANIFEST.findtext('maintainer')
copyright = f'{author}, {MANIFEST.findtext("license")}'
version = release = MANIFEST.findtext('version')

extensions = [
    'myst_parser',
    'sphinx.ext.autodoc',
    'sphinx.ext.autosummary',
    'sphinx.ext.linkcode',
    'sphinx_gallery.gen_gallery',
    'docstrings',
    'mathml',
    'repository',
]
templates_path = ['templates']
exclude_patterns = ['extensions', 'templates', 'static']
nitpicky = True
# Type variables have no page.
nitpick_ignore = [
    ('py:class', 'contact_sim.control._inverse_dynamics.LeggedDynamics'),
    ('py:class', 'contact_sim.control._trot.Gait'),
    ('py:class', 'contact_sim.terrain._grid.SeenFromAbove'),  # every ground
    ('py:class', 'contact_sim.control._policy_file.PolicyFile'),  # load_policy makes both
    ('py:class', 'contact_sim.control._policy_network.Network'),
    ('py:class', 'contact_sim.parameters.Declared'),
    ('py:class', 'contact_sim.sensors._sensor.Values'),
]
repository_root = str(ROOT)

# Markdown as on a code host: the same anchors of headings, the same formulas.
myst_heading_anchors = 6
myst_fence_as_directive = ['math']
myst_enable_extensions = ['dollarmath']

autosummary_generate = True
autosummary_imported_members = True
autosummary_context = {'first': EXPORTED}  # each is documented once
autosummary_ignore_module_all = False
autodoc_member_order = 'bysource'
autodoc_typehints_format = 'short'
autodoc_preserve_defaults = True
autodoc_type_aliases = {name: name for name in ('Array', 'ArrayLike', 'Indices')}
python_maximum_signature_line_length = 90

# Pages beside which there is nothing to navigate.
ALONE = (
    'quick_start',
    'verdict',
    'reality',
    'identify',
    'derivatives',
    'torch',
    'jax',
    'viewer',
    'which_model',
    'architecture',
    'benchmarks',
    'limitations',
    'security',
    'changelog',
)
html_theme = 'pydata_sphinx_theme'
html_title = project
html_static_path = ['static']
html_css_files = ['site.css']
html_context = {'default_mode': 'auto'}
html_sidebars = {page: [] for page in ALONE}
html_theme_options = {
    'header_links_before_dropdown': 8,
    'navbar_end': ['theme-switcher'],
    'navbar_align': 'left',
    'show_nav_level': 2,
    'footer_start': ['copyright'],
    'footer_end': [],
    'secondary_sidebar_items': ['page-toc'],
}
html_math_renderer = 'mathml'
html_copy_source = False

# GALLERY=1 runs the examples; without it their text is shown.
sphinx_gallery_conf = {
    'examples_dirs': str(ROOT / 'examples' / 'gallery'),
    'gallery_dirs': 'gallery',
    'plot_gallery': os.environ.get('GALLERY') == '1',
    'abort_on_example_error': True,
    'download_all_examples': False,
    'show_signature': False,
    'write_computation_times': False,
}

rosdoc2_settings = {'allow_other_extensions': True, 'override_theme': False}
