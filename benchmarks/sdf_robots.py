"""What becomes of SDF files: a table of every model below a folder, against Drake's parser.

python benchmarks/sdf_robots.py FOLDER [FOLDER or file ...] [--out table.md]

Each file is loaded by `load_robot` and by Drake, and both are compared at random states: mass
matrix, placements of links and bias forces (Coriolis and gravity). Meshes may be missing.
"""

from __future__ import annotations

import argparse
import logging
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin
from pydrake.math import RigidTransform, RotationMatrix
from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import BodyIndex, JointIndex

from contact_sim import RobotModel, load_robot
from contact_sim.errors import ContactSimError

QUANTITIES = 'mass matrix', 'places', 'bias'
HEADINGS = 'file', 'joints', 'mass kg', *QUANTITIES, 'left out'
LONGEST = 150


def plant_of(source: str | Path) -> Any:
    """Return Drake's plant of a file, or of the text of an SDF."""
    plant = MultibodyPlant(1e-3)
    parser = Parser(plant)
    if isinstance(source, Path):
        packages = parser.package_map()
        for folder in list(source.absolute().parents)[:4]:
            if (folder / 'package.xml').is_file():
                name = ElementTree.parse(folder / 'package.xml').findtext('name', '').strip()
                if packages.Contains(name):  # Drake's own, which it would download
                    packages.Remove(name)
                packages.Add(name, str(folder))
        parser.AddModels(str(source))
    else:
        parser.AddModelsFromString(source, 'sdf')
    plant.Finalize()
    return plant


def differences(robot: RobotModel, plant: Any, samples: int = 3) -> dict[str, float]:
    """Return the largest differences of a robot from Drake's plant, bias and masses relative."""
    own, rng = robot.pinocchio_model, np.random.default_rng(0)
    data, largest = own.createData(), dict.fromkeys(QUANTITIES, 0.0)
    names = [name for name in list(own.names)[1:] if name != 'root_joint']
    for _ in range(samples):
        context = plant.CreateDefaultContext()
        q, v = pin.neutral(own), rng.normal(size=robot.nv)
        to_drake = np.zeros((plant.num_velocities(), robot.nv))
        if robot.floating_base:
            base = plant.GetBodyByName(robot.base_frame)
            turn = pin.rpy.rpyToMatrix(*rng.normal(size=3))
            q[:3], q[3:7] = rng.normal(size=3), pin.Quaternion(turn).coeffs()
            plant.SetFreeBodyPose(context, base, RigidTransform(RotationMatrix(turn), q[:3]))
            first = base.floating_velocities_start_in_v()
            to_drake[first : first + 3, 3:6] = to_drake[first + 3 : first + 6, :3] = turn
        positions = plant.GetPositions(context)
        for name in names:
            theirs, ours = _joint_of(plant, name), own.joints[own.getJointId(name)]
            positions[theirs.position_start()] = q[ours.idx_q] = rng.normal()
            to_drake[theirs.velocity_start(), ours.idx_v] = 1.0
        plant.SetPositions(context, positions)
        plant.SetVelocities(context, to_drake @ v)
        upper = np.triu(pin.crba(own, data, q))
        theirs = to_drake.T @ plant.CalcMassMatrix(context) @ to_drake
        found = {'mass matrix': _relative(upper + np.triu(upper, 1).T, theirs)}
        # Drake differentiates the velocity of the base in the world
        drift = np.zeros(robot.nv)
        if robot.floating_base:
            drift[:3] = np.cross(v[3:6], v[:3])
        bias = plant.CalcBiasTerm(context) - plant.CalcGravityGeneralizedForces(context)
        bias = to_drake.T @ bias + theirs @ drift
        found['bias'] = _relative(pin.nonLinearEffects(own, data, q, v), bias, 1.0)
        pin.framesForwardKinematics(own, data, q)
        found['places'] = max(
            np.abs(
                plant.EvalBodyPoseInWorld(context, body).GetAsMatrix4()
                - data.oMf[own.getFrameId(body.name(), pin.FrameType.BODY)].homogeneous
            ).max()
            for body in map(plant.get_body, map(BodyIndex, range(plant.num_bodies())))
            if own.existFrame(body.name(), pin.FrameType.BODY)
        )  # fmt: skip
        largest = {key: max(float(found[key]), value) for key, value in largest.items()}
    return largest


def _relative(ours: Any, theirs: Any, least: float = 0.0) -> float:
    return float(np.abs(ours - theirs).max() / max(np.abs(theirs).max(), least))


def _joint_of(plant: Any, name: str) -> Any:
    """Return the joint of a name in any model."""
    joints = (plant.get_joint(JointIndex(k)) for k in range(plant.num_joints()))
    return next(joint for joint in joints if joint.name() == name)


def row(name: str, file: Path) -> str:
    """Return the line of a file."""
    try:
        robot = load_robot(file, check_meshes=False, body_contacts=False)
    except ContactSimError as error:
        reason = ' '.join(str(error).removeprefix(f'{file}: ').split()).replace('|', '/')
        return f'| {name} |' + ' |' * (len(HEADINGS) - 2) + f' refused: {reason[:LONGEST]} |'
    cells = [name, str(robot.n_joints), f'{robot.total_mass:.4g}']
    notes = '; '.join(note for note in robot.notes if 'left out' in note)[:LONGEST]
    try:
        found = differences(robot, plant_of(file))
        cells += [f'{found[one]:.1e}' if found[one] else '0' for one in QUANTITIES]
    except (RuntimeError, StopIteration) as error:
        reason = ' '.join(str(error).split()).rpartition('error: ')[2][:LONGEST]
        cells += [f'Drake refuses it: {reason}', '', '']
    return '| ' + ' | '.join([*cells, notes]).replace('\n', ' ') + ' |'


def files_of(places: Sequence[Path]) -> Iterator[Path]:
    """Yield the SDF files of folders with a link, and the files that are named."""
    for place in places:
        files = [place] if place.is_file() else sorted(place.rglob('*.sdf'))
        yield from (file for file in files if '<link' in file.read_text(errors='replace'))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('places', nargs='+', type=Path, metavar='FOLDER')
    parser.add_argument('--out', type=Path, help='file to write the table to, besides')
    given = parser.parse_args()
    warnings.simplefilter('ignore')
    logging.getLogger('drake').setLevel(logging.ERROR)
    written = [f'| {" | ".join(HEADINGS)} |', '|---' * len(HEADINGS) + '|']
    print('\n'.join(written), flush=True)
    for file in files_of(given.places):
        written.append(row('/'.join(file.parts[-2:]), file))
        print(written[-1], flush=True)
    if given.out is not None:
        given.out.write_text('\n'.join(written) + '\n', encoding='utf-8')


if __name__ == '__main__':
    main()
