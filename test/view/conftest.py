"""A browser for the tests of the page, and ports that nobody uses."""

from __future__ import annotations

import shutil
import socket
from contextlib import ExitStack

import pytest

from contact_sim import _reading

CHROMIUM = next(filter(None, map(shutil.which, ('chromium', 'chromium-browser'))), None)
ARGUMENTS = [
    '--no-sandbox', '--disable-gpu', '--enable-unsafe-swiftshader', '--use-angle=swiftshader',
    '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync', '--mute-audio', '--disable-dev-shm-usage',
]  # fmt: skip
PATIENCE = 90_000.0
"""Time for anything that a page does [ms]: it draws with the processor, which others use, too."""
SIZE = {'width': 640, 'height': 480}


@pytest.fixture
def free_port() -> int:
    """A port of this machine on which nothing listens."""
    with socket.socket() as listener:
        listener.bind(('127.0.0.1', 0))
        return int(listener.getsockname()[1])


@pytest.fixture
def browser_is_there() -> None:
    """Skip a test that needs Chromium where there is none."""
    if CHROMIUM is None:
        pytest.skip('no chromium on PATH: apt-get install chromium')


@pytest.fixture
def browser_context(browser_is_there):
    """A headless Chromium with a new, empty profile."""
    playwright = pytest.importorskip(
        'playwright.sync_api', reason='no playwright: pip install playwright'
    )
    with ExitStack() as open_:
        with _reading.lifted():  # a thread of an earlier test may still read
            driver = open_.enter_context(playwright.sync_playwright())
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        try:
            context = browser.new_context(viewport=SIZE)
            context.set_default_timeout(PATIENCE)
            yield context
        finally:
            browser.close()


@pytest.fixture
def browser_page(browser_context):
    """A page of that Chromium; the test fails where its console has an error."""
    page = browser_context.new_page()
    errors: list[str] = []
    page.on('console', lambda said: errors.append(said.text) if said.type == 'error' else None)
    page.on('pageerror', lambda error: errors.append(str(error)))
    yield page
    page.close()
    assert errors == []
