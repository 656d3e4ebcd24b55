"""Stands for the viewer of a node: asks what a page can ask for, writes down what came of it.

`python asking_viewer.py NODE_ARGUMENTS` is a node with this viewer.
"""

import json
import os
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path

RESULTS = 'ASKING_VIEWER'
"""Environment variable: the file of the results."""


def asked(descriptor, end):
    """Ask for everything once; return what came of it."""
    from contact_sim.errors import ContactSimError
    from contact_sim.view.viewer_main import RemoteSession

    connection = Connection(end)
    session = RemoteSession(connection, descriptor, on_end=lambda: os._exit(0))
    session.wait()

    def settled(condition=lambda: True):
        limit = time.monotonic() + 20.0
        while True:
            time.sleep(0.1)  # three records, and what is told in between
            shown = session.latest()
            if condition() or time.monotonic() > limit:
                return shown

    def refused(ask, *how):
        try:
            ask(*how)
        except ContactSimError as error:
            return str(error)
        return ''

    def momentum():
        before = settled()
        session.step(1)
        after = settled()
        way = after.report.record.energy[1:] - before.report.record.energy[1:]
        return (way / (after.report.time - before.report.time)).tolist()

    results = {'robot': session.robot.name, 'frames': session.capabilities.frames}
    session.pause()
    settled(lambda: session.settings().paused)
    results['paused'] = session.settings().paused
    session.set_contact_model('sap')
    session.set_friction(0.3)
    session.set_restitution(0.25)
    session.set_speed(2.0)
    session.drop(1.0)
    settled(lambda: session.settings().speed == 2.0)
    results['chosen'] = vars(session.settings())
    begin = settled().report
    results['gap'] = float(begin.feet.gap.min())
    results['momentum'] = [momentum()]
    session.push('trunk', (40.0, 0.0, 0.0), (0.0, 0.0, 0.0), 0.1)
    session.step(50)
    results['pushed'] = {name: list(w) for name, w in settled().wrenches.items()}
    session.step(60)
    results['momentum'].append(momentum())
    end = settled().report
    results['time'] = end.time - begin.time
    session.drag('trunk', end.contacts.position[0].tolist())
    session.step(1)
    results['dragged'] = {name: list(w) for name, w in settled().wrenches.items()}
    session.drag('trunk', None)
    session.step(1)
    results['let_go'] = list(settled().wrenches)
    results['refusals'] = {
        'set_pose': refused(session.set_pose, 'no such pose'),
        'set_friction': refused(session.set_friction, -1.0),
        'set_contact_model': refused(session.set_contact_model, 'saap'),
        'push': refused(session.push, 'nose', (1, 0, 0), (0, 0, 0), 0.1),
        'drag': refused(session.drag, 'nose', (1, 0, 0)),
        'step': refused(session.step, 0),
        'set_time_step': refused(session.set_time_step, 1e-4),
        'unknown': refused(session.execute, 'no such thing', {}),
    }
    session.reset()
    results['standing'] = float(settled().report.feet.gap.min())
    session.resume()
    settled(lambda: not session.settings().paused)
    results['resumed'] = not session.settings().paused
    return results, connection


def main(descriptor, end, host, port):
    """Ask, write the results and wait for the end of the node."""
    results, connection = asked(int(descriptor), int(end))
    path = Path(os.environ[RESULTS])
    path.with_suffix('.new').write_text(json.dumps(results | {'pid': os.getpid()}))
    path.with_suffix('.new').rename(path)
    connection.send(('serving', f'http://{host}:{port}'))
    time.sleep(600.0)


if __name__ == '__main__' and '--ros-args' not in sys.argv:
    main(*sys.argv[1:])
elif __name__ == '__main__':
    from talkative_node import run

    from contact_sim.view import _process

    _process.PROGRAM = (str(Path(__file__)),)
    run()
