"""What becomes of MJCF files: a table of every robot below a folder, and of mutated files.

python benchmarks/mjcf_robots.py FOLDER [FOLDER or file ...] [--out table.md] [--stands]
python benchmarks/mjcf_robots.py FILE ... --mutations 3000

Each file is loaded by `load_robot` and by MuJoCo, and both are compared at random states: mass,
placements of bodies, mass matrix, bias forces, and numbers of joints (armature, damping, dry
friction, ranges, limits of effort). Missing meshes are replaced by boxes in both, where no mass
depends on them. A mutated file has one to three of its values or elements changed: it has to load
to what MuJoCo makes of it, or be refused.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import mujoco
import numpy as np
import pinocchio as pin

from contact_sim import RobotModel, load_robot
from contact_sim.errors import ContactSimError
from contact_sim.inspect._inspection import Source, inspect_robot, standing_trial
from contact_sim.robot._mjcf_compiler import compiled
from contact_sim.robot._urdf import read_description

TOLERANCE = 1e-9
"""Largest relative difference."""
QUANTITIES = 'mass', 'places', 'mass matrix', 'bias', 'joints', 'shapes'
HEADINGS = 'file', 'joints', 'mass kg', *QUANTITIES, 'feet', 'left out', 'stands 2 s'
LONGEST = 150
"""Characters of a reason in the table."""
GRAVITY = 9.81
UNBOUNDED = 1e300
COMMAND = 1e9
"""A command beyond every limit."""


# ------------------------------------------------------------------- one robot, read in two ways


def differences(robot: RobotModel, model: Any, samples: int = 3) -> dict[str, float]:
    """Return the largest differences of a robot from the model that MuJoCo compiled.

    What a robot cannot have, and what its notes say, is taken out of `model`, which is changed:
    fluid, compensation of gravity, armature of a free joint and of tendons.
    """
    model.opt.gravity[:] = 0.0, 0.0, -GRAVITY
    model.opt.disableflags = mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    model.body_gravcomp[:] = 0.0
    if model.ntendon and hasattr(model, 'tendon_armature'):
        model.tendon_armature[:] = 0.0
    own, base = robot.pinocchio_model, None
    columns: list[tuple[int, int, int]] = []  # joint, dof of MuJoCo, joint of Pinocchio
    for joint in range(model.njnt):
        name = model.joint(joint).name or f'joint_{joint}'
        body = model.body(model.jnt_bodyid[joint]).name or f'body_{model.jnt_bodyid[joint]}'
        if int(model.jnt_type[joint]) == int(mujoco.mjtJoint.mjJNT_FREE):
            if robot.floating_base and body == robot.base_frame:
                base = joint
                model.dof_armature[model.jnt_dofadr[joint] :][:6] = 0.0
        elif own.existJointName(name):
            columns.append((joint, int(model.jnt_dofadr[joint]), int(own.getJointId(name))))
    assert robot.floating_base == (base is not None)
    largest = dict.fromkeys(QUANTITIES, 0.0)
    largest['joints'] = max(
        (_joint_difference(robot, model, *one) for one in columns), default=0.0
    )
    data, mine, rng = mujoco.MjData(model), own.createData(), np.random.default_rng(0)
    moved = {int(model.jnt_bodyid[joint]) for joint, _, _ in columns}
    moved |= {int(model.jnt_bodyid[base])} if base is not None else set()
    of_robot = [
        body for body in range(1, model.nbody) if moved & set(_above(model, body))
    ]  # fmt: skip
    mass = float(sum(model.body_mass[body] for body in of_robot))
    largest['mass'] = abs(robot.total_mass - mass) / mass
    for _ in range(samples):
        q, v, to_mujoco = _state(robot, model, data, columns, base, rng)
        mujoco.mj_forward(model, data)
        full = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(model, data, full)
        upper = np.triu(pin.crba(own, mine, q))
        ours = upper + np.triu(upper, 1).T
        theirs = to_mujoco.T @ full @ to_mujoco
        worst = np.abs(ours - theirs).max() / np.abs(theirs).max()
        largest['mass matrix'] = max(largest['mass matrix'], worst)
        bias = np.array(data.qfrc_bias)
        if base is not None:  # MuJoCo differentiates the velocity of a free body in the world
            drift = np.zeros(model.nv)
            place = int(model.jnt_dofadr[base])
            drift[place : place + 3] = to_mujoco[place : place + 3, :3] @ np.cross(v[3:6], v[:3])
            bias += full @ drift
        bias, forces = to_mujoco.T @ bias, pin.nonLinearEffects(own, mine, q, v)
        size = max(np.abs(bias).max(), np.abs(forces).max(), 1.0)
        largest['bias'] = max(largest['bias'], np.abs(bias - forces).max() / size)
        pin.framesForwardKinematics(own, mine, q)
        for body in of_robot:
            name = model.body(body).name or f'body_{body}'
            place = mine.oMf[own.getFrameId(name, pin.FrameType.BODY)]
            at, turn = data.xpos[body], data.xmat[body].reshape(3, 3)
            size = max(1.0, np.abs(at).max())
            worst = max(np.abs(place.translation - at).max() / size,
                        np.abs(place.rotation - turn).max())  # fmt: skip
            largest['places'] = max(largest['places'], float(worst))
        largest['shapes'] = max(largest['shapes'], _shape_difference(robot, model, data, mine))
    return {name: float(value) for name, value in largest.items()}


def _shape_difference(robot: RobotModel, model: Any, data: Any, mine: Any) -> float:
    """Return the largest difference of spheres, boxes, capsules and cylinders that touch [m]."""
    own, worst = robot.pinocchio_model, 0.0
    for link in ElementTree.fromstring(robot.description).iterfind('link'):
        name = link.get('name', '')
        frame = mine.oMf[own.getFrameId(name, pin.FrameType.BODY)]
        for shape in link.iterfind('collision'):
            called, geometry = shape.get('name', ''), shape.find('geometry/*')
            assert geometry is not None
            if geometry.tag == 'mesh':
                continue
            number = called.rpartition('/geom_')[2]
            geom = int(number) if '/geom_' in called else model.geom(called).id
            origin = shape.find('origin')
            assert origin is not None
            xyz, rpy = (
                np.array([float(x) for x in origin.get(key, '').split()]) for key in ('xyz', 'rpy')
            )
            place = frame * pin.SE3(pin.rpy.rpyToMatrix(rpy), xyz)
            # not geom_xmat: MuJoCo rounds frames of geoms to those of inertia
            body = int(model.geom_bodyid[geom])
            turn = np.zeros(9)
            mujoco.mju_quat2Mat(turn, model.geom_quat[geom])
            carrier = data.xmat[body].reshape(3, 3)
            at, turn = (
                data.xpos[body] + carrier @ model.geom_pos[geom],
                carrier @ turn.reshape(3, 3),
            )
            size = max(1.0, np.abs(at).max())
            keys = 'radius', 'length', 'size'
            words = ' '.join(geometry.get(key, '') for key in keys).split()
            sizes = [float(x) for x in words]
            halves = model.geom_size[geom]
            theirs = {
                'sphere': halves[:1], 'box': 2.0 * halves, 'cylinder': halves[:2] * (1.0, 2.0),
            }[geometry.tag]  # fmt: skip
            kind = mujoco.mjtGeom(int(model.geom_type[geom])).name
            assert ('CAPSULE' in kind) == (geometry.get('caps') == 'sphere')
            worst = max(
                worst, np.abs(place.translation - at).max() / size,
                np.abs(place.rotation - turn).max(), np.abs(np.array(sizes) - theirs).max(),
            )  # fmt: skip
    return float(worst)


def _above(model: Any, body: int) -> Iterator[int]:
    """Yield a body and all that carry it."""
    while body:
        yield body
        body = int(model.body_parentid[body])


def _state(
    robot: RobotModel, model: Any, data: Any, columns: Sequence[tuple[int, int, int]],
    base: int | None, rng: np.random.Generator,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Write a random state to `data`; return q, v and the matrix from our v to MuJoCo's."""
    own, q, v = robot.pinocchio_model, pin.neutral(robot.pinocchio_model), np.zeros(robot.nv)
    to_mujoco = np.zeros((model.nv, robot.nv))
    mujoco.mj_resetData(model, data)
    if base is not None:
        place, dof = int(model.jnt_qposadr[base]), int(model.jnt_dofadr[base])
        quaternion = rng.normal(size=4)
        quaternion /= np.linalg.norm(quaternion)
        w, x, y, z = quaternion
        turn = pin.Quaternion(w, x, y, z).matrix()
        q[:3], q[3:7], v[:6] = rng.normal(size=3), (x, y, z, w), rng.normal(size=6)
        data.qpos[place : place + 7] = [*q[:3], *quaternion]
        data.qvel[dof : dof + 6] = [*(turn @ v[:3]), *v[3:6]]
        to_mujoco[dof : dof + 3, :3], to_mujoco[dof + 3 : dof + 6, 3:6] = turn, np.eye(3)
    for joint, dof, ours in columns:
        one, place = own.joints[ours], int(model.jnt_qposadr[joint])
        speeds = rng.normal(size=one.nv)
        v[one.idx_v : one.idx_v + one.nv] = data.qvel[dof : dof + one.nv] = speeds
        to_mujoco[dof : dof + one.nv, one.idx_v : one.idx_v + one.nv] = np.eye(one.nv)
        if one.nv == 3:
            w, x, y, z = quaternion = rng.normal(size=4)
            quaternion /= np.linalg.norm(quaternion)
            data.qpos[place : place + 4] = quaternion
            q[one.idx_q : one.idx_q + 4] = [*quaternion[1:], quaternion[0]]
        else:
            data.qpos[place] = q[one.idx_q] = rng.normal()
    return q, v, to_mujoco


def _joint_difference(robot: RobotModel, model: Any, joint: int, dof: int, ours: int) -> float:
    """Return the largest difference of the numbers of a joint."""
    own = robot.pinocchio_model
    one, name = own.joints[ours], str(own.names[ours])
    pairs = [
        (np.reshape(own.armature, -1)[one.idx_v], model.dof_armature[dof]),
        (own.damping[one.idx_v], model.dof_damping[dof]),
        (own.friction[one.idx_v], model.dof_frictionloss[dof]),
    ]
    if one.nv == 1:
        spring = next((s for s in robot.springs if s.joint == name), None)
        pairs.append((spring.stiffness if spring else 0.0, model.jnt_stiffness[joint]))
        if spring:
            pairs.append((spring.rest, model.qpos_spring[model.jnt_qposadr[joint]]))
    limits = {limit.joints[0]: limit for limit in robot.position_limits}
    if one.nv == 1 and model.jnt_limited[joint] and not _locked(model, joint):
        pairs += zip((limits[name].lower, limits[name].upper), model.jnt_range[joint], strict=True)
    elif one.nv == 1 and name in limits and not limits[name].holds:
        return np.inf
    effort = _largest_effort(model, joint, dof)
    if name in robot.joint_names and effort is not None:
        pairs.append((float(own.effortLimit[one.idx_v]), effort))
    return max(
        0.0 if a == b or min(a, b) > UNBOUNDED else abs(a - b) / max(1.0, abs(b)) for a, b in pairs
    )


def _locked(model: Any, joint: int) -> bool:
    """Return whether an equality constraint holds a joint at one place."""
    return any(
        int(model.eq_type[i]) == int(mujoco.mjtEq.mjEQ_JOINT) and model.eq_obj1id[i] == joint
        and model.eq_obj2id[i] < 0 and model.eq_active0[i]
        for i in range(model.neq)
    )  # fmt: skip


def _largest_effort(model: Any, joint: int, dof: int) -> float | None:
    """Return the largest effort that the actuators of a joint give; None: by another law."""
    plain = {int(mujoco.mjtTrn.mjTRN_JOINT), int(mujoco.mjtTrn.mjTRN_JOINTINPARENT)}
    acting = [
        i for i in range(model.nu)
        if int(model.actuator_trntype[i]) in plain and model.actuator_trnid[i][0] == joint
    ]  # fmt: skip
    limited = [
        model.jnt_actfrclimited[joint] or model.actuator_forcelimited[i]
        or (model.actuator_ctrllimited[i] and not np.any(model.actuator_biasprm[i]))
        for i in acting
    ]  # fmt: skip
    usual = all(
        model.actuator_dyntype[i] == 0 and model.actuator_gaintype[i] == 0
        and model.actuator_biastype[i] <= 1 and model.actuator_gainprm[i][0] > 0.0
        for i in acting
    )  # fmt: skip
    if not acting or not usual or not all(limited):
        return UNBOUNDED * 10.0 if not acting or usual else None
    data, largest = mujoco.MjData(model), 0.0
    for sign in (1.0, -1.0):
        for i in acting:
            data.ctrl[i] = sign * COMMAND * (np.sign(model.actuator_gear[i][0]) or 1.0)
        before = model.actuator_ctrllimited.copy()
        servo = [i for i in acting if np.any(model.actuator_biasprm[i])]
        model.actuator_ctrllimited[servo] = 0  # a clipped target need not reach the limit
        mujoco.mj_forward(model, data)
        model.actuator_ctrllimited[:] = before
        largest = max(largest, sign * float(data.qfrc_actuator[dof]))
    return largest


# ------------------------------------------------------------------------------- the table


def described(file: Path, stands: bool) -> dict[str, Any]:
    """Return the row of a file: what was loaded, how it differs, whether it stands."""
    try:
        robot = inspect_robot(Source(str(file))).robot if stands else loaded(file)
    except ContactSimError as error:
        return {'refused': str(error).removeprefix(f'{file}: ')}
    try:
        model = mujoco.MjModel.from_xml_path(str(file))
    except ValueError:  # no mesh
        model = compiled(read_description(file), False, [])[2]
    found: dict[str, Any] = differences(robot, model)
    trial = standing_trial(robot) if stands else None
    return {
        **found, 'joints driven': robot.n_joints, 'kg': robot.total_mass,
        'feet': f'{len(robot.feet)}: {robot.feet[0].frame}' if robot.feet else '',
        'left out': left_out(robot.notes),
        'stands': '' if trial is None else ('yes, ' if trial.stands else 'no, ') + trial.why,
    }  # fmt: skip


def left_out(notes: Sequence[str]) -> str:
    """Return the subjects of the notes on what was left out, each once."""
    words = {
        'exclusions' if 'exclusions' in note else note.partition(' = ')[0].split(' is ')[0]
        .split(' are ')[0].removeprefix('a ').removeprefix('an ')
        for note in (one.partition(':')[0] for one in notes)
        if ' left out' in note or ' not of ' in note or 'is a number of' in note
    }  # fmt: skip
    return ', '.join(sorted(words))


def loaded(source: str | Path, check_meshes: bool = False) -> RobotModel:
    """Return the robot of an MJCF, without its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        return load_robot(source, check_meshes=check_meshes, body_contacts=False)


def row(name: str, found: dict[str, Any]) -> str:
    """Return a line of the table."""
    if 'refused' in found:
        empty = ' |' * (len(HEADINGS) - 2)
        return f'| {name} |{empty} refused: {_short(found["refused"])} |'
    numbers = [f'{found[one]:.1e}' if found[one] else '0' for one in QUANTITIES]
    cells = (
        name, str(found['joints driven']), f'{found["kg"]:.4g}', *numbers,
        _short(found['feet']), found['left out'].replace('|', '/'), _short(found['stands']),
    )  # fmt: skip
    return '| ' + ' | '.join(cells) + ' |'


def _short(text: str) -> str:
    text = ' '.join(text.replace('|', '/').split())
    return text if len(text) <= LONGEST else text[:LONGEST] + '...'


def files_of(places: Sequence[Path]) -> Iterator[Path]:
    """Yield the MJCF files of folders and the files that are named, without scenes and parts."""
    for place in places:
        if place.is_file():
            yield place
            continue
        for file in sorted(place.rglob('*.xml')):
            text = file.read_text(encoding='utf-8', errors='replace')
            if '<mujoco' in text and '<worldbody' in text and '<body' in text:
                yield file


# ------------------------------------------------------------------------------- mutations

VALUES = ('0', '-1', '1e-3', '0.5', '2', '1e6', 'nan', '1e400', '0x10', 'true', 'false', 'auto',
          '', 'x', '0 0 0', '1 0 0', '0 0 1', '-1 1', '1 -1', '1 2 3 4', 'hinge', 'slide', 'ball',
          'free', 'sphere', 'capsule', 'box', 'cylinder', 'ellipsoid', 'mesh')  # fmt: skip


def mutated(text: str, rng: np.random.Generator) -> str:
    """Return an MJCF text with one to three changes of values, attributes or elements."""
    root = ElementTree.fromstring(text)
    for _ in range(int(rng.integers(1, 4))):
        elements = list(root.iter())
        element = elements[int(rng.integers(len(elements)))]
        kind = int(rng.integers(6))
        if kind <= 2 and element.attrib:
            key = sorted(element.attrib)[int(rng.integers(len(element.attrib)))]
            words = element.attrib[key].split()
            if kind == 0 and words:  # a number within a value
                k = int(rng.integers(len(words)))
                with contextlib.suppress(ValueError):
                    words[k] = repr(float(words[k]) * float(rng.choice([-1.0, 0.0, 0.1, 3.0])))
                element.set(key, ' '.join(words))
            elif kind == 1:
                element.set(key, str(rng.choice(VALUES)))
            else:
                del element.attrib[key]
        elif kind == 3:  # an attribute of another element
            other = elements[int(rng.integers(len(elements)))]
            if other.attrib:
                key = sorted(other.attrib)[int(rng.integers(len(other.attrib)))]
                element.set(key, other.attrib[key])
        elif kind == 4 and len(element):
            element.remove(element[int(rng.integers(len(element)))])
        elif kind == 5 and len(element):
            element.append(element[int(rng.integers(len(element)))])
    return ElementTree.tostring(root, encoding='unicode')


def outcome(text: str, file: Path | None = None) -> str:
    """Return what becomes of an MJCF text, or of it in the place of a file; '!' if that is wrong.

    Both refuse it, only `load_robot` refuses it, or both load the same.
    """
    source: str | Path = text
    with contextlib.ExitStack() as stack:
        if file is not None:
            folder = file.parent
            source = Path(stack.enter_context(_file_in(folder, text)))
        try:
            robot = loaded(source, check_meshes=True)
        except ContactSimError as error:
            return 'refused by MuJoCo' if 'MuJoCo:' in str(error) else 'refused here'
        try:
            if file is None:
                model = mujoco.MjModel.from_xml_string(text)
            else:
                model = mujoco.MjModel.from_xml_path(str(source))
        except ValueError as error:
            return f'! MuJoCo refuses it, it was loaded: {error}'
    found = differences(robot, model, samples=1)
    worst = max(found, key=lambda name: found[name])
    if not found[worst] <= TOLERANCE:
        return f'! {worst} differs by {found[worst]:.3g}'
    return 'loaded, equal'


@contextlib.contextmanager
def _file_in(folder: Path, text: str) -> Iterator[str]:
    """Yield the path of a file in a folder with a text, for a moment."""
    handle, path = tempfile.mkstemp('.xml', dir=folder)
    try:
        with os.fdopen(handle, 'w', encoding='utf-8') as stream:
            stream.write(text)
        yield path
    finally:
        os.unlink(path)


def mutations(files: Sequence[Path], number: int) -> Counter[str]:
    """Return how many mutated files had which outcome."""
    counts: Counter[str] = Counter()
    texts = [file.read_text(encoding='utf-8') for file in files]
    for k in range(number):
        rng = np.random.default_rng(k)
        which = k % len(files)
        found = outcome(mutated(texts[which], rng), files[which])
        if found.startswith('!'):
            print(f'{files[which]}, mutation {k}: {found}', flush=True)
        counts['wrong' if found.startswith('!') else found] += 1
    return counts


def main() -> None:
    """Print the table, or the outcomes of mutations."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('places', nargs='+', type=Path, metavar='FOLDER')
    parser.add_argument('--out', type=Path, help='file to write the table to, besides')
    parser.add_argument('--stands', action='store_true', help='try whether each robot stands')
    parser.add_argument('--mutations', type=int, default=0, metavar='N')
    given = parser.parse_args()
    mujoco.set_mju_user_warning(lambda _: None)  # no MUJOCO_LOG.TXT
    files = list(files_of(given.places))
    if given.mutations:
        for words, number in mutations(files, given.mutations).most_common():
            print(f'{number} {words}')
        return
    written = [f'| {" | ".join(HEADINGS)} |', '|---' * len(HEADINGS) + '|']
    print('\n'.join(written), flush=True)
    for file in files:
        written.append(row('/'.join(file.parts[-3:]), described(file, given.stands)))
        print(written[-1], flush=True)
    if given.out is not None:
        given.out.write_text('\n'.join(written) + '\n', encoding='utf-8')


if __name__ == '__main__':
    main()
