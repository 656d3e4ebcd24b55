"""The page answers the address that was printed, and nobody from elsewhere."""

import socket
import urllib.error
import urllib.request

import pytest

from contact_sim.view._process import (
    TOKEN,
    NotServed,
    address_of,
    guarded_server,
    is_this_machine,
    refusal,
)

viser = pytest.importorskip('viser', reason="no viser: pip install 'contact_sim[view]'")
websockets = pytest.importorskip('websockets', reason='comes with viser')


@pytest.fixture(scope='module')
def served():
    """A server with a button, its port, and how often the button was clicked."""
    server, clicks = guarded_server('127.0.0.1', 0), []
    server.gui.add_button('go').on_click(clicks.append)
    yield server.get_port(), clicks
    server.stop()


def opened(port, path=f'/{TOKEN}', name='localhost', **options):
    """Return a client that says `name` is the host; Origin where it is given."""
    from page_client import PageClient

    connection = socket.create_connection(('127.0.0.1', port))
    return PageClient(f'http://{name}:{port}{path}', sock=connection, **options)


@pytest.mark.parametrize('origin', ['here', None])
@pytest.mark.parametrize('name', ['localhost', '127.0.0.1', 'LOCALHOST'])
def test_the_page_itself_commands(served, name, origin):
    from page_client import wait_until

    port, clicks = served
    before = len(clicks)
    options = {} if origin is None else {'origin': f'http://{name}:{port}'}
    client = opened(port, name=name, **options)
    try:
        wait_until(lambda: any(value.get('label') == 'go' for value in client.inputs.values()))
        client.click('go')
        wait_until(lambda: len(clicks) > before)
    finally:
        client.close()


FOREIGN = {
    'no token': {'path': '/'},
    'wrong token': {'path': '/' + TOKEN[:-1] + ('a' if TOKEN[-1] != 'a' else 'b')},
    'token in the query': {'path': f'/?token={TOKEN}'},
    'foreign origin': {'origin': 'http://evil.example'},
    'origin of another port': {'origin': 'http://localhost:1'},
    'origin of a file': {'origin': 'null'},
    'rebound name': {'name': 'evil.example'},
    'rebound name of its own origin': {'name': 'evil.example', 'origin': 'here'},
}


@pytest.mark.parametrize('options', FOREIGN.values(), ids=FOREIGN)
def test_nobody_from_elsewhere_commands(served, options):
    port, clicks = served
    before = len(clicks)
    if options.get('origin') == 'here':
        options = options | {'origin': f'http://{options["name"]}:{port}'}
    with pytest.raises(websockets.exceptions.InvalidStatus) as refused:
        opened(port, **options)
    assert refused.value.response.status_code == 403
    assert len(clicks) == before


def got(port, path, **headers):
    request = urllib.request.Request(f'http://127.0.0.1:{port}{path}', headers=headers)
    with urllib.request.urlopen(request, timeout=20.0) as answer:
        return answer.read()


def test_the_page_is_handed_out_with_the_token_only(served):
    port, _ = served
    assert b'<html' in got(port, f'/{TOKEN}/')
    assert b'<html' in got(port, f'/{TOKEN}/?darkMode')
    for path, headers, why in (
        ('/', {}, 'token is missing'),
        ('/index.html', {}, 'token is missing'),
        (f'/{TOKEN}/', {'Host': 'evil.example'}, 'Host names another machine'),
        (f'/{TOKEN}/', {'Origin': 'https://evil.example'}, 'from elsewhere'),
    ):
        with pytest.raises(urllib.error.HTTPError, match='403') as refused:
            got(port, path, **headers)
        assert why in refused.value.read().decode()


@pytest.mark.parametrize(
    ('header', 'host', 'own'),
    [
        ('localhost:8080', 'localhost', True),
        ('127.0.0.1:9090', 'localhost', True),  # as `ssh -L 9090:localhost:8080` has it
        ('[::1]:8080', 'localhost', True),
        ('192.168.1.7:8080', '0.0.0.0', True),  # nobody can rebind an address
        ('robot.lab:8080', 'robot.lab', True),
        (f'{socket.gethostname()}:8080', '0.0.0.0', True),
        ('evil.example:8080', '0.0.0.0', False),
        ('localhost.evil.example', 'localhost', False),
        ('[::1', 'localhost', False),
        ('', 'localhost', False),
        ('localhost@evil.example:8080', 'localhost', False),
    ],
)
def test_hosts_that_are_this_machine(header, host, own):
    assert is_this_machine(header, host) is own


def test_two_hosts_are_none():
    headers = {'Host': ['localhost:1', 'localhost:1'], 'Origin': []}
    assert 'Host' in refusal('localhost', f'/{TOKEN}', headers)
    assert refusal('localhost', f'/{TOKEN}', headers | {'Host': ['localhost:1']}) == ''


def test_the_address_has_a_token_that_cannot_be_guessed():
    assert address_of('0.0.0.0', 8080) == f'http://localhost:8080/{TOKEN}/'
    assert len(TOKEN) == 22  # 128 bits


def test_a_viser_that_cannot_be_guarded_is_not_served(monkeypatch):
    stopped = []

    class Unguarded:
        def __init__(self, *arguments, **options):
            pass

        def stop(self):
            stopped.append(self)

    monkeypatch.setattr(viser, 'ViserServer', Unguarded)
    with pytest.raises(NotServed, match='cannot be kept to one token'):
        guarded_server('127.0.0.1', 0)
    assert len(stopped) == 1
