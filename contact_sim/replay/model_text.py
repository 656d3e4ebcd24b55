"""Read a Pinocchio model from the text in a recording.

Pinocchio's reader trusts its text: a damaged one can end the process in the middle of C++. So
another process reads it first, `model_trial.py`, and computes with it; what it survives is read
here.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pinocchio as pin

from contact_sim.replay.archive import RecordingError

TRIAL = Path(__file__).with_name('model_trial.py')
LONGEST = 60.0
"""Time that the trial may take [s]."""


def model_from(text: str) -> pin.Model:
    """Return the model in `text`.

    Raises:
        RecordingError: Pinocchio cannot read it, or what it reads is no model.
    """
    try:
        trial = subprocess.run(
            [sys.executable, str(TRIAL)], input=text.encode(errors='replace'), timeout=LONGEST,
            capture_output=True, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise _refused(f'it takes longer than {LONGEST:g} s') from error
    if trial.returncode:
        said = trial.stderr.decode(errors='replace').strip().splitlines()
        ended = f'the process that read it ended with {trial.returncode}'
        raise _refused(said[-1] if trial.returncode == 1 and said else ended)
    model = pin.Model()
    try:
        model.loadFromString(text)
    except Exception as error:  # whatever C++ throws
        raise _refused(str(error)) from error
    return model


def _refused(reason: str) -> RecordingError:
    return RecordingError(
        f'Pinocchio {pin.__version__} cannot read the robot of the recording: {reason}'
    )
