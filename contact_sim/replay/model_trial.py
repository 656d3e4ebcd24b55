"""Program: read a Pinocchio model from stdin and compute with it; exit code 0 if that works.

`_format.py` runs it in a child process, because Pinocchio 4.1 still ends the process on some
damaged texts. It imports nothing of contact_sim, so that it starts quickly.
"""

from __future__ import annotations

import sys
from contextlib import suppress

import numpy as np
import pinocchio as pin


def check_structure(model: pin.Model) -> None:
    """Raise ValueError where numbers of joints, coordinates and frames do not fit together."""
    joints, nq, nv = range(1, model.njoints), 0, 0
    per_joint = (model.joints, model.names, model.parents, model.inertias, model.jointPlacements)
    if any(len(values) != model.njoints for values in per_joint):
        raise ValueError('lists of joints have different lengths')
    for i in joints:
        joint = model.joints[i]
        if not model.parents[i] < i or (joint.id, joint.idx_q, joint.idx_v) != (i, nq, nv):
            raise ValueError(f'joint {i} is not where it should be')
        nq, nv = nq + joint.nq, nv + joint.nv
    if (nq, nv) != (model.nq, model.nv):
        raise ValueError(f'{nq}, {nv} coordinates, expected {model.nq}, {model.nv}')
    lengths = dict.fromkeys(('lowerPositionLimit', 'upperPositionLimit'), nq) | dict.fromkeys(
        ('effortLimit', 'velocityLimit', 'damping', 'friction', 'armature', 'rotorInertia',
         'rotorGearRatio'), nv)  # fmt: skip
    for name, length in lengths.items():
        values = getattr(model, name)
        if values.shape != (length,) or np.isnan(values).any():
            raise ValueError(f'{name} is not {length} numbers')
    for frame in model.frames:
        if not (frame.parentJoint < model.njoints and frame.parentFrame < len(model.frames)):
            raise ValueError(f'frame {frame.name!r} has no parent')


def main() -> None:
    """Read, check and compute, with a memory limit: argument of the program [bytes]."""
    with suppress(ImportError):  # not on Windows
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        most = min(int(sys.argv[1]), sys.maxsize)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    model = pin.Model()
    model.loadFromString(sys.stdin.buffer.read().decode())
    check_structure(model)
    data, q, v = model.createData(), pin.neutral(model), np.ones(model.nv)
    pin.computeAllTerms(model, data, q, v)
    pin.computeMinverse(model, data, q)
    pin.updateFramePlacements(model, data)
    pin.integrate(model, q, v)


if __name__ == '__main__':
    try:
        main()
    except Exception as error:  # whatever C++ throws
        sys.exit(f'{error}')
