"""A recording is data: nothing in it runs, and no damage to it ends the process."""

import json
import random
from contextlib import suppress

import numpy as np
import pinocchio as pin
import pytest
from urdf_texts import link, program, robot

from contact_sim import Simulator, load_robot
from contact_sim.errors import RobotDescriptionError
from contact_sim.replay import Recorder, Recording, repeat
from contact_sim.replay._format import RecordingError, description_hash, model_from


def recorded(robot, path):
    sim = Simulator(robot)
    with Recorder(sim, path):
        sim.step(np.zeros(robot.n_joints))
    return path


def with_robot(path, **changes):
    """Change the robot in a recording, and its hash with it: nothing is left to notice."""
    with np.load(path) as file:
        arrays = dict(file)
    header = json.loads(str(arrays['header']))
    header['robot'].update(changes)
    header['robot']['hash'] = description_hash(header['robot'])
    np.savez(path, **arrays | {'header': np.array(json.dumps(header))})
    return path


def test_no_description_in_a_recording_is_run(tmp_path):
    mark, file = tmp_path / 'it_ran', tmp_path / 'evil.xacro'
    file.write_text(program(mark))
    path = recorded(load_robot(robot(link('0', 2.0))), tmp_path / 'run.npz')
    assert repeat(Recording(path)).equal
    for description, reason in (
        (program(mark), 'is a xacro'), (str(file), 'no URDF text'), ('go1', 'no URDF text'),
    ):  # fmt: skip
        with_robot(path, description=description)
        with pytest.raises((RecordingError, RobotDescriptionError), match=reason):
            repeat(Recording(path))
        assert not mark.exists()


TEXT = pin.buildSampleModelManipulator().saveToString()


def damaged(seed):
    """Return the text of a manipulator with one word, or one letter, changed."""
    chance, words = random.Random(seed), TEXT.split(' ')
    if seed % 2:
        words[chance.randrange(len(words))] = chance.choice(
            ['-1', '99999999999', '0', '7', 'nan', 'x', '1e300', '4294967295']
        )
        return ' '.join(words)
    place = chance.randrange(len(TEXT))
    return TEXT[:place] + chr(chance.randrange(32, 127)) + TEXT[place + 1 :]


def test_the_text_of_a_model_is_read_as_it_is():
    assert model_from(TEXT) == pin.buildSampleModelManipulator()


def test_the_text_of_a_model_may_not_ask_for_all_memory():
    with pytest.raises(RecordingError, match='cannot read the robot of the recording'):
        model_from(TEXT.replace(' 6 ', ' 99999999999 '))


@pytest.mark.parametrize('seed', [*range(4), 37, 153, 443, 583, 677, 1033, 1083])
def test_damage_to_the_text_of_a_model_is_an_error_or_nothing(seed):
    with suppress(RecordingError):  # the number that was changed may be of any use
        model_from(damaged(seed)).createData()
