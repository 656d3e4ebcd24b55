"""The version of the package. It is written once, in package.xml."""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path


def _version() -> str:
    """Return the version of the source tree this file lies in, else of the installed package."""
    manifest = Path(__file__).resolve().parent.parent / 'package.xml'
    if manifest.is_file():
        found = re.search(r'<version>\s*(\S+?)\s*</version>', manifest.read_text('utf-8'))
        if found:
            return found[1]
    return metadata.version('contact_sim')


__version__ = _version()
