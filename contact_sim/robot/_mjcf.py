"""Read MJCF: MuJoCo's own compiler reads it, and what it compiled becomes a URDF.

    <mujoco> → MuJoCo's parser → checks of its files → MuJoCo's compiler → <robot> and `Extras`

The compiled model has numbers only: defaults, classes, frames, includes, `fromto`, degrees and
inertias of geoms are resolved by MuJoCo and by nobody else. Each body becomes a link in the axes
of the body; a body with several joints, or with one beside its origin, hangs on a chain of links
without mass. What a URDF has no word for is in attributes that other parsers pass over (armature,
<loop_joint>), in `Extras`, or in a note that names the element.
"""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

import numpy as np
import pinocchio as pin

from contact_sim import _reading
from contact_sim._types import Array
from contact_sim.errors import RobotDescriptionError
from contact_sim.robot._mjcf_compiler import compiled
from contact_sim.robot._urdf import (
    Description,
    Extras,
    JointValues,
    add_joint,
    origin_attributes,
    parse_xml,
)

NO_LIMIT = sys.float_info.max
"""Effort, speed or position that limits nothing; a URDF has no word for it."""
UNNAMED = 'MuJoCo Model'
"""Name that MuJoCo gives to a model without one."""
STANDING_KEYS = 'standing', 'stand', 'home'
"""Keyframes that become the pose 'standing', the best first."""
FOOT = re.compile('foot|feet|sole|toe|paw', re.IGNORECASE)
"""What bodies, geoms, classes or sites of feet are called."""
SHAPES = 'SPHERE', 'CAPSULE', 'CYLINDER', 'BOX', 'MESH'
"""Types of geoms that a link can have."""
DOF_NUMBERS = 'damping', 'frictionloss', 'armature'
"""Numbers of a joint that a floating base has not."""
MOST_NAMES = 6
"""Names in a note."""


def translated(description: Description, check_meshes: bool) -> Description:
    """Return a description whose root is <mujoco> as a URDF and what a URDF does not say.

    Without `check_meshes`, a mesh that is not on this machine may be missing where nothing but
    the picture and contacts need it: on bodies with an <inertial>.

    Raises:
        RobotDescriptionError: no MuJoCo is installed, its compiler refuses the text, or the model
            cannot be carried.
    """
    if description.file is None:
        description = replace(description, place='MJCF text')
    file, place = description.file, description.place
    notes: list[str] = []
    with _reading.reading(place, RobotDescriptionError):
        mujoco, spec, model, drawn = compiled(description, check_meshes, notes)
        reader = _Translation(mujoco, spec, model, file, place, drawn)
        reader.notes += notes
        robot, extras = reader.robot()
    text = ElementTree.tostring(robot, encoding='unicode')
    return Description(text, parse_xml(text, place), file, place, extras)


# ------------------------------------------------------------------------------ the compiled model


@dataclass
class _Drive:
    """What the actuators of a joint do to it, in its own coordinate."""

    low: float = 0.0
    high: float = 0.0
    kp: float = 0.0
    kd: float = 0.0
    names: list[str] = field(default_factory=list)
    gear: float = 1.0


class _Translation:
    """Writes the URDF of one compiled model."""

    def __init__(
        self, mujoco: Any, spec: Any, model: Any, file: Path | None, place: str,
        drawn: Mapping[str, Path | None],
    ) -> None:  # fmt: skip
        self.mujoco, self.spec, self.model = mujoco, spec, model
        self.file, self.place, self.drawn = file, place, drawn
        self.notes: list[str] = []
        self.noted: dict[tuple[str, str], list[str]] = {}
        named = spec.modelname not in ('', UNNAMED)
        unnamed = file.stem if file is not None else 'robot'
        self.root = Element('robot', name=spec.modelname if named else unnamed)
        self.links: dict[str, Element] = {}
        self.joint_elements: dict[int, Element] = {}
        self.stands_for: dict[str, tuple[str, ...]] = {}
        self.feet_of: dict[int, tuple[str, ...]] = {}
        self.taken: dict[str, set[str]] = {'link': set(), 'joint': set()}
        kinds = mujoco.mjtObj
        self.bodies = self._names(kinds.mjOBJ_BODY, model.nbody, 'body')
        self.joints = self._names(kinds.mjOBJ_JOINT, model.njnt, 'joint')
        self.geoms = self._names(kinds.mjOBJ_GEOM, model.ngeom, 'geom')
        self.unnamed = {
            i for i in range(model.ngeom) if not mujoco.mj_id2name(model, kinds.mjOBJ_GEOM, i)
        }
        for i in self.unnamed:
            self.geoms[i] = f'{self.bodies[int(model.geom_bodyid[i])]}/{self.geoms[i]}'
        self.sites = self._names(kinds.mjOBJ_SITE, model.nsite, 'site')
        self.keys = self._names(kinds.mjOBJ_KEY, model.nkey, 'key')
        self.equalities = self._names(kinds.mjOBJ_EQUALITY, model.neq, 'equality')
        actuators = getattr(model, 'nactuator', model.nu)
        self.actuators = self._names(kinds.mjOBJ_ACTUATOR, actuators, 'actuator')
        self.classes = {geom.id: geom.classname.name for geom in spec.geoms if geom.id >= 0}
        self.children: list[list[int]] = [[] for _ in range(model.nbody)]
        for body in range(1, model.nbody):
            self.children[int(model.body_parentid[body])].append(body)

    def _names(self, kind: Any, number: int, what: str) -> list[str]:
        """Return the names of elements; an element without one is called by kind and number."""
        found = [self.mujoco.mj_id2name(self.model, kind, i) or '' for i in range(number)]
        names = set(found)
        for i, name in enumerate(found):
            if not name:
                found[i] = _unused(f'{what}_{i}', names)
                names.add(found[i])
        return found

    # ----------------------------------------------------------------------------- the whole robot

    def robot(self) -> tuple[Element, Extras]:
        """Return the <robot> and what a URDF does not say."""
        model = self.model
        if model.nflex:
            raise RobotDescriptionError(f'{self.place}: <flex>: soft bodies are not modelled')
        tops, base = self._tops()
        self.kept = [body for top in tops for body in self._below(top)]
        if base is None:
            self.kept.insert(0, 0)
        self.touching, self.seen = self._uses()
        self.drives = self._drives()
        for name in self.bodies:  # links of bodies have their names in any case
            self.taken['link'].add(name)
        self.taken['joint'].update(self.joints)
        if base is None:
            self._link(0)
        for body in self.kept:
            if body:
                self._body(body, is_base=body == base)
        self._couple()
        poses = self._poses(base)
        self._note_the_rest()
        driven = [name for name in self.joints if name in self.drives]
        if not self.actuators:
            self.notes.append('no <actuator>: every joint with one degree of freedom is driven')
        mapped = {
            name: (drive.kp, drive.kd)
            for name, drive in self.drives.items()
            if drive.kp > 0.0 or drive.kd > 0.0
        }
        return self.root, Extras(
            floats=base is not None, feet=self._feet(), stands_for=self.stands_for,
            actuated_joints=tuple(driven) if self.actuators else None,
            poses=poses, gains=mapped, notes=self._notes(),
        )  # fmt: skip

    def _tops(self) -> tuple[list[int], int | None]:
        """Return the children of the world that move or carry joints, and which one floats."""
        model, free = self.model, int(self.mujoco.mjtJoint.mjJNT_FREE)
        tops, floating, still = list[int](), list[int](), list[int]()
        for top in self.children[0]:
            moving = any(model.body_jntnum[body] for body in self._below(top))
            (tops if moving else still).append(top)
            joint = int(model.body_jntadr[top])
            if moving and model.body_jntnum[top] and int(model.jnt_type[joint]) == free:
                floating.append(top)
        if not tops:
            raise RobotDescriptionError(f'{self.place}: no body of it has a joint: nothing moves')
        if floating and len(tops) > 1:  # a robot and objects
            driven = [top for top in tops if any(map(self._driven, self._below(top)))]
            if len(driven) > 1:  # of which one floats
                driven = [top for top in driven if top in floating]
            if len(driven) != 1:
                names = ', '.join(self.bodies[top] for top in tops)
                raise RobotDescriptionError(
                    f'{self.place}: bodies {names} move independently of each other and '
                    f'{self.bodies[floating[0]]!r} floats; give each robot a file of its own'
                )
            self._note('bodies that move apart from the robot are not of it', 'body',
                       [self.bodies[top] for top in tops if top not in driven])  # fmt: skip
            tops, floating = driven, [top for top in floating if top in driven]
        self._note('bodies that stand in the world are not of the robot', 'body',
                   [self.bodies[top] for top in still])  # fmt: skip
        world = [self.geoms[i] for i in range(model.ngeom) if not model.geom_bodyid[i]]
        self._note('geoms of the world are not of the robot; give the simulation its ground',
                   'geom', world)  # fmt: skip
        return tops, floating[0] if floating else None

    def _driven(self, body: int) -> bool:
        """Return whether an actuator acts on a joint or site of a body."""
        model, kinds = self.model, self.mujoco.mjtTrn
        carriers = {
            int(kinds.mjTRN_JOINT): model.jnt_bodyid, int(kinds.mjTRN_SITE): model.site_bodyid,
            int(kinds.mjTRN_JOINTINPARENT): model.jnt_bodyid,
        }  # fmt: skip
        for i in range(len(self.actuators)):
            of_kind = carriers.get(int(model.actuator_trntype[i]))
            if of_kind is not None and of_kind[int(model.actuator_trnid[i][0])] == body:
                return True
        return False

    def _below(self, body: int) -> list[int]:
        """Return a body and all that hang on it, parents first."""
        found = [body]
        for child in self.children[body]:
            found += self._below(child)
        return found

    def _uses(self) -> tuple[set[int], set[int]]:
        """Return the geoms that can touch the ground, and those to be seen."""
        model = self.model
        moving = {body for body in self.kept if body}
        of_robot = [i for i in range(model.ngeom) if int(model.geom_bodyid[i]) in moving]
        world = [i for i in range(model.ngeom) if model.body_weldid[model.geom_bodyid[i]] == 0]
        masks = {(int(model.geom_contype[i]), int(model.geom_conaffinity[i])) for i in world}
        masks.discard((0, 0))
        pairs = [set(pair) for pair in zip(model.pair_geom1, model.pair_geom2, strict=True)]
        paired = {int(i) for pair in pairs if pair & set(world) for i in pair}
        touching, alone = set(), []
        for i in of_robot:
            own, met = int(model.geom_contype[i]), int(model.geom_conaffinity[i])
            if i in paired or any(own & b or a & met for a, b in masks or {(1, 1)}):
                touching.add(i)
            elif own or met:
                alone.append(self.geoms[i])
        self._note('geoms that can touch other geoms of the robot only have no collision geometry',
                   'geom', alone)  # fmt: skip
        seen = {i for i in of_robot if model.geom_group[i] < 3}
        return touching, seen or touching

    # ---------------------------------------------------------------------------- links and joints

    def _link(self, body: int) -> Element:
        """Add the link of a body: inertia and geoms."""
        model, name = self.model, self.bodies[body]
        link = self._empty_link(name)
        if body and model.body_mass[body] > 0.0:
            inertial = SubElement(link, 'inertial')
            turn = _rotation(model.body_iquat[body])
            tensor = turn @ np.diag(model.body_inertia[body]) @ turn.T
            at = pin.SE3(np.eye(3), np.array(model.body_ipos[body]))
            SubElement(inertial, 'origin', origin_attributes(at))
            SubElement(inertial, 'mass', value=_text(model.body_mass[body]))
            moments = {
                f'i{"xyz"[a]}{"xyz"[b]}': _text(0.5 * (tensor[a, b] + tensor[b, a]))
                for a in range(3) for b in range(a, 3)
            }  # fmt: skip
            SubElement(inertial, 'inertia', moments)
        first = int(model.body_geomadr[body])
        geoms = range(first, first + int(model.body_geomnum[body])) if first >= 0 else ()
        if body == 0:
            return link
        apart = self._foot_spheres(body, geoms)
        touching = [geom for geom in geoms if geom in self.touching]
        self.feet_of |= {geom: (name,) for geom in touching if geom not in apart}
        for geom in geoms:
            if geom in self.seen:
                self._shape(link, 'visual', geom)
            if geom in self.touching and geom not in apart:
                self._shape(link, 'collision', geom)
                self._stand_for(self.geoms[geom], (name,))
        if apart:
            alone = len(apart) == 1 and apart[0] not in self.unnamed
            wanted = self.geoms[apart[0]] if alone else f'{name}_tip'
            own = self._fixed(name, self._unused('link', wanted), pin.SE3.Identity())
            self.feet_of |= {geom: (own.get('name', ''),) for geom in apart}
            for geom in apart:
                self._shape(own, 'collision', geom)
                self._stand_for(self.geoms[geom], (own.get('name', ''),))
            self.stands_for[name] = (own.get('name', ''),)
        self._frames(body, geoms)
        return link

    def _stand_for(self, name: str, links: tuple[str, ...]) -> None:
        """Let a name of a geom or site stand for links; bodies have their names for themselves."""
        if name not in self.bodies:
            self.stands_for[name] = links

    def _empty_link(self, name: str) -> Element:
        link = SubElement(self.root, 'link', name=name)
        self.links[name] = link
        self.taken['link'].add(name)
        return link

    def _foot_spheres(self, body: int, geoms: Iterable[int]) -> list[int]:
        """Return the spheres at the end of a limb beside shapes of other kinds, as feet have."""
        sphere = int(self.mujoco.mjtGeom.mjGEOM_SPHERE)
        own = [geom for geom in geoms if geom in self.touching]
        balls = [geom for geom in own if self.model.geom_type[geom] == sphere]
        moving = any(self.model.body_jntnum[other] for other in self._below(body)[1:])
        return [] if moving or len(balls) == len(own) else balls

    def _frames(self, body: int, geoms: Iterable[int]) -> None:
        """Add a link without mass for each site of a body."""
        model, name = self.model, self.bodies[body]
        for site in np.flatnonzero(model.site_bodyid == body).tolist():
            at = _placement(model.site_pos[site], model.site_quat[site])
            taken = self.sites[site] in self.taken['link']
            link = self._unused('link', f'{self.sites[site]}_site' if taken else self.sites[site])
            self._fixed(name, link, at)
            around = [
                geom for geom in geoms
                if geom in self.touching
                and int(model.geom_type[geom]) == int(self.mujoco.mjtGeom.mjGEOM_SPHERE)
                and math.dist(model.geom_pos[geom], at.translation) < model.geom_size[geom][0]
            ]  # fmt: skip
            moving = any(model.body_jntnum[other] for other in self._below(body)[1:])
            if around:
                foot = self.feet_of[around[0]]
            elif not moving and any(geom in self.touching for geom in geoms):
                foot = self.stands_for.get(name, (name,))
            else:
                continue
            self._stand_for(link, foot)

    def _fixed(self, parent: str, child: str, at: pin.SE3) -> Element:
        """Add a link without mass that is fixed to another one."""
        link = self._empty_link(child)
        add_joint(self.root, self._unused('joint', f'{child}_fixed'), 'fixed', parent, child, at)
        return link

    def _unused(self, kind: str, wanted: str) -> str:
        name = _unused(wanted, self.taken[kind])
        self.taken[kind].add(name)
        return name

    def _body(self, body: int, is_base: bool) -> None:
        """Add the link of a body and the joints between it and its parent."""
        model, name = self.model, self.bodies[body]
        first, number = int(model.body_jntadr[body]), int(model.body_jntnum[body])
        self._link(body)
        if is_base:
            dof = int(model.jnt_dofadr[first])
            numbers = {what: getattr(model, f'dof_{what}')[dof] for what in DOF_NUMBERS}
            numbers['stiffness'] = model.jnt_stiffness[first]
            for what, value in numbers.items():
                if value:
                    self._note(
                        f'{what} of a free joint is left out', 'joint', [self.joints[first]]
                    )
            return
        above = self.bodies[int(model.body_parentid[body])]
        at = _placement(model.body_pos[body], model.body_quat[body])
        for joint in range(first, first + number):
            anchor, axis = np.array(model.jnt_pos[joint]), np.array(model.jnt_axis[joint])
            at = at * pin.SE3(np.eye(3), anchor) * self._before_motion(joint, axis)
            last = joint == first + number - 1 and not anchor.any()
            below = name if last else self._unused('link', f'{name}_{self.joints[joint]}')
            if not last:
                self._empty_link(below)
            self._moving_joint(joint, above, below, at, axis)
            above, at = below, pin.SE3(np.eye(3), -anchor)
        if above != name:
            add_joint(self.root, self._unused('joint', f'{name}_fixed'), 'fixed', above, name, at)

    def _before_motion(self, joint: int, axis: Array) -> pin.SE3:
        """Return the motion of a joint from its position 0 to `ref`, backwards."""
        model, kinds = self.model, self.mujoco.mjtJoint
        start, kind = -float(model.qpos0[model.jnt_qposadr[joint]]), int(model.jnt_type[joint])
        if kind == int(kinds.mjJNT_HINGE) and start:
            return pin.SE3(pin.AngleAxis(start, axis).toRotationMatrix(), np.zeros(3))
        if kind == int(kinds.mjJNT_SLIDE) and start:
            return pin.SE3(np.eye(3), start * axis)
        return pin.SE3.Identity()

    def _moving_joint(self, joint: int, above: str, below: str, at: pin.SE3, axis: Array) -> None:
        """Add a hinge, slide or ball joint."""
        model, kinds, name = self.model, self.mujoco.mjtJoint, self.joints[joint]
        kind = {
            int(kinds.mjJNT_HINGE): 'revolute', int(kinds.mjJNT_SLIDE): 'prismatic',
            int(kinds.mjJNT_BALL): 'spherical',
        }[int(model.jnt_type[joint])]  # fmt: skip
        element = add_joint(self.root, name, kind, above, below, at)
        self.joint_elements[joint] = element
        dof = int(model.jnt_dofadr[joint])
        numbers = {
            'damping': model.dof_damping[dof], 'friction': model.dof_frictionloss[dof],
            'armature': model.dof_armature[dof],
        }  # fmt: skip
        if kind != 'spherical':
            numbers['spring_stiffness'] = model.jnt_stiffness[joint]
            if model.jnt_stiffness[joint]:
                numbers['spring_reference'] = model.qpos_spring[model.jnt_qposadr[joint]]
        stated = {what: _text(value) for what, value in numbers.items() if value}
        if stated:
            SubElement(element, 'dynamics', stated)
        if kind == 'spherical':
            if model.jnt_limited[joint]:
                self._note('range of a ball joint is left out', 'joint', [name])
            return
        SubElement(element, 'axis', xyz=_text(*axis))
        low, high = model.jnt_range[joint] if model.jnt_limited[joint] else (-NO_LIMIT, NO_LIMIT)
        drive = self.drives.get(name)
        effort = min(max(drive.high, -drive.low), NO_LIMIT) if drive else NO_LIMIT
        SubElement(element, 'limit', lower=_text(low), upper=_text(high), effort=_text(effort),
                   velocity=_text(NO_LIMIT))  # fmt: skip
        if drive and abs(drive.gear) not in (0.0, 1.0):
            transmission = SubElement(self.root, 'transmission', name=f'{name}_gear')
            SubElement(transmission, 'joint', name=name)
            actuator = SubElement(transmission, 'actuator', name=drive.names[0])
            SubElement(actuator, 'mechanicalReduction').text = _text(abs(drive.gear))

    # -------------------------------------------------------------------------------------- shapes

    def _shape(self, link: Element, use: str, geom: int) -> None:
        """Add the <visual> or <collision> elements of a geom."""
        model, kinds = self.model, self.mujoco.mjtGeom
        kind = kinds(int(model.geom_type[geom])).name.removeprefix('mjGEOM_')
        if kind not in SHAPES:
            what = 'touches nothing' if use == 'collision' else 'is not drawn'
            self._note(f'a geom of type {kind.lower()} {what}', 'geom', [self.geoms[geom]])
            return
        at = _placement(model.geom_pos[geom], model.geom_quat[geom])
        radius, half = model.geom_size[geom][:2]
        parts: list[tuple[pin.SE3, str, Mapping[str, str]]] = []
        if kind == 'SPHERE':
            parts = [(at, 'sphere', {'radius': _text(radius)})]
        elif kind in ('CAPSULE', 'CYLINDER'):
            lengths = {'radius': _text(radius), 'length': _text(2.0 * half)}
            if kind == 'CAPSULE' and use == 'collision':
                lengths['caps'] = 'sphere'
            parts = [(at, 'cylinder', lengths)]
            for end in (-half, half) if kind == 'CAPSULE' and use == 'visual' else ():
                ball = at * pin.SE3(np.eye(3), np.array([0.0, 0.0, end]))
                parts.append((ball, 'sphere', {'radius': _text(radius)}))
        elif kind == 'BOX':
            parts = [(at, 'box', {'size': _text(*(2.0 * model.geom_size[geom]))})]
        else:
            mesh = self._mesh(geom, at)
            if mesh is None:
                return
            parts = [(mesh[0], 'mesh', mesh[1])]
        for origin, tag, sizes in parts:
            element = SubElement(link, use, name=self.geoms[geom])
            SubElement(element, 'origin', origin_attributes(origin))
            SubElement(SubElement(element, 'geometry'), tag, dict(sizes))
            if use == 'visual':
                material = int(model.geom_matid[geom])
                colour = model.mat_rgba[material] if material >= 0 else model.geom_rgba[geom]
                own = _text(*(round(float(x), 4) for x in colour))
                SubElement(SubElement(element, 'material', name=f'rgba {own}'), 'color', rgba=own)

    def _mesh(self, geom: int, at: pin.SE3) -> tuple[pin.SE3, Mapping[str, str]] | None:
        """Return placement and attributes of the file of a mesh, None where it cannot be named."""
        model, mesh = self.model, int(self.model.geom_dataid[geom])
        name = self.mujoco.mj_id2name(model, self.mujoco.mjtObj.mjOBJ_MESH, mesh) or ''
        asset = next((one for one in self.spec.meshes if one.id == mesh), None)
        address = int(model.mesh_pathadr[mesh])
        scale = np.array(model.mesh_scale[mesh])
        turned = asset is not None and np.abs(np.array(asset.refquat)[1:]).max() > 0.0
        if name in self.drawn and self.drawn[name] is None:
            self._note('meshes that are not on this machine are left out', 'mesh', [name])
            return None
        if (address < 0 and name not in self.drawn) or asset is None or self.file is None:
            self._note('meshes without a file are left out', 'mesh', [name])
            return None
        compiled_from = model.paths[max(address, 0) :].split(b'\0')[0].decode(errors='replace')
        path = Path(self.drawn.get(name) or compiled_from)
        if path.suffix.lower().removeprefix('.') not in _reading.MESHES:
            self._note('meshes in files of another kind are left out', 'mesh', [name])
            return None
        if turned and np.ptp(scale) > 0.0:
            self._note('meshes that refquat turns before a scale of three numbers are left out',
                       'mesh', [name])  # fmt: skip
            return None
        # MuJoCo moves vertices to the axes of inertia; a file has them scaled · Rᵀ (x − refpos)
        moved = _placement(model.mesh_pos[mesh], model.mesh_quat[mesh])
        reference = _rotation(asset.refquat).T
        first = pin.SE3(reference, -scale * (reference @ np.array(asset.refpos)))
        folder, absolute = self.file.absolute().parent, path.absolute()
        inside = absolute.is_relative_to(folder)
        uri = os.path.relpath(absolute, folder) if inside else str(absolute)
        return at * moved.inverse() * first, {'filename': uri, 'scale': _text(*scale)}

    # ----------------------------------------------------------------------------------- actuators

    def _drives(self) -> dict[str, _Drive]:
        """Return the actuators by joint: effort limits and gains of servos."""
        model, mujoco = self.model, self.mujoco
        single = {int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE)}
        at_joints = {int(mujoco.mjtTrn.mjTRN_JOINT), int(mujoco.mjtTrn.mjTRN_JOINTINPARENT)}
        drives: dict[str, _Drive] = {}
        for i, name in enumerate(self.actuators):
            joint = int(model.actuator_trnid[i][0])
            at_joint = int(model.actuator_trntype[i]) in at_joints
            if not at_joint or int(model.jnt_type[joint]) not in single:
                self._note('actuators of something else than a joint with one degree of freedom '
                           'are left out', 'actuator', [name])  # fmt: skip
                continue
            if int(model.jnt_bodyid[joint]) not in self.kept:
                continue
            self._note_law(i, name)
            gear = float(model.actuator_gear[i][0])
            drive = drives.setdefault(self.joints[joint], _Drive(gear=gear))
            drive.names.append(name)
            gain, bias = float(model.actuator_gainprm[i][0]), model.actuator_biasprm[i]
            affine = int(model.actuator_biastype[i]) == int(mujoco.mjtBias.mjBIAS_AFFINE)
            servo = affine and np.any(bias[1:3])
            low, high = -math.inf, math.inf
            if servo:
                drive.kp -= gear * gear * float(bias[1])
                drive.kd -= gear * gear * float(bias[2])
            elif model.actuator_ctrllimited[i]:
                low, high = sorted(gear * gain * float(x) for x in model.actuator_ctrlrange[i])
            if model.actuator_forcelimited[i]:
                ends = sorted(gear * float(x) for x in model.actuator_forcerange[i])
                low, high = max(low, ends[0]), min(high, ends[1])
            drive.low, drive.high = drive.low + low, drive.high + high
        for joint, name in enumerate(self.joints):
            if name in drives and model.jnt_actfrclimited[joint]:
                low, high = map(float, model.jnt_actfrcrange[joint])
                drives[name].low = max(drives[name].low, low)
                drives[name].high = min(drives[name].high, high)
        for name in list(drives):
            low, high = drives[name].low, drives[name].high
            if not (low < 0.0 or high > 0.0):
                self._note('joints whose actuator has no force are not driven', 'joint', [name])
                del drives[name]
            elif abs(low + high) > 1e-9 * max(abs(low), abs(high)) and low != -high:
                self._note('of different limits of effort in both directions the larger one holds '
                           'in both', 'joint', [name])  # fmt: skip
        several = [name for name, drive in drives.items() if len(drive.names) > 1]
        self._note('several actuators are one: their limits and gains are added', 'joint', several)
        return drives

    def _note_law(self, i: int, name: str) -> None:
        """Note what the law of an actuator has besides gain, kp and kd."""
        model, mujoco = self.model, self.mujoco
        gain, bias = mujoco.mjtGain, mujoco.mjtBias
        plain = (
            int(model.actuator_gaintype[i]) == int(gain.mjGAIN_FIXED)
            and int(model.actuator_biastype[i]) in (int(bias.mjBIAS_NONE), int(bias.mjBIAS_AFFINE))
            and not model.actuator_biasprm[i][0]
        )
        if not plain:
            self._note('the law of an actuator is left out: it gives the effort that is commanded',
                       'actuator', [name])  # fmt: skip
        if int(model.actuator_dyntype[i]) != int(mujoco.mjtDyn.mjDYN_NONE):
            self._note('dynamics of an activation are left out (actuators of contact_sim have a '
                       'time_constant)', 'actuator', [name])  # fmt: skip
        for what in ('damping', 'armature', 'delay'):  # from MuJoCo 3.5 or 4 on
            values = getattr(model, f'actuator_{what}', None)
            if values is not None and np.any(values[i]):
                self._note(f'{what} of an actuator is left out', 'actuator', [name])
        affine = int(model.actuator_biastype[i]) == int(bias.mjBIAS_AFFINE)
        servo = affine and np.any(model.actuator_biasprm[i][1:3])
        limited = model.actuator_ctrllimited[i] and servo
        joint = int(model.actuator_trnid[i][0])
        if limited and not np.allclose(model.actuator_ctrlrange[i], model.jnt_range[joint]):
            self._note('ctrlrange of a position or velocity actuator is left out', 'actuator',
                       [name])  # fmt: skip

    # -------------------------------------------------------------------------------- constraints

    def _couple(self) -> None:
        """Add <loop_joint> and <mimic> for the equality constraints that can be carried."""
        model, kinds = self.model, self.mujoco.mjtEq
        carried = []
        for i, name in enumerate(self.equalities):
            kind = kinds(int(model.eq_type[i]))
            if not model.eq_active0[i]:
                self._note('equality constraints that are not active are left out', 'equality',
                           [name])  # fmt: skip
                continue
            if kind in (kinds.mjEQ_CONNECT, kinds.mjEQ_WELD):
                done = self._close(i, name, kind == kinds.mjEQ_WELD)
            elif kind == kinds.mjEQ_JOINT:
                done = self._follow(i, name)
            else:
                what = kind.name.removeprefix('mjEQ_').lower()
                self._note(
                    f'an equality constraint of type {what} is left out', 'equality', [name]
                )
                done = False
            carried += [name] if done else []
        self._note('equality constraints hold exactly here; MuJoCo makes them soft', 'equality',
                   carried)  # fmt: skip

    def _close(self, i: int, name: str, weld: bool) -> bool:
        """Add a <loop_joint>; return whether that could be done."""
        model, data = self.model, self.model.eq_data[i]
        ends = int(model.eq_obj1id[i]), int(model.eq_obj2id[i])
        if int(model.eq_objtype[i]) == int(self.mujoco.mjtObj.mjOBJ_SITE):
            frames = [_placement(model.site_pos[site], model.site_quat[site]) for site in ends]
            bodies = [int(model.site_bodyid[site]) for site in ends]
        else:
            bodies = list(ends)
            at = (data[3:6], data[0:3]) if weld else (data[0:3], data[3:6])
            turn = _rotation(data[6:10]) if weld else np.eye(3)
            frames = [pin.SE3(turn, np.array(at[0])), pin.SE3(np.eye(3), np.array(at[1]))]
        if any(body not in self.kept for body in bodies):
            place = ' '.join(f'{x:.6g}' for x in frames[0].translation)
            anchor = f'{"FrameAnchor" if weld else "PointAnchor"} of {self.bodies[bodies[0]]}'
            what = f'to the world, give the Simulator a {anchor} at ({place})'
            self._note(f'an equality constraint to no body of the robot is left out; {what}',
                       'equality', [name])  # fmt: skip
            return False
        loop = SubElement(self.root, 'loop_joint', name=self._unused('joint', name),
                          type='fixed' if weld else 'spherical')  # fmt: skip
        for tag, body, frame in zip(('link1', 'link2'), bodies, frames, strict=True):
            SubElement(loop, tag, {'link': self.bodies[body], **origin_attributes(frame)})
        return True

    def _follow(self, i: int, name: str) -> bool:
        """Add a <mimic>, or lock the joint; return whether that could be done."""
        model, data = self.model, self.model.eq_data[i]
        joint, leader = int(model.eq_obj1id[i]), int(model.eq_obj2id[i])
        element = self.joint_elements.get(joint)
        rest = model.qpos0[model.jnt_qposadr[joint]]
        if element is None or element.find('mimic') is not None:
            self._note('an equality constraint of joints is left out', 'equality', [name])
            return False
        if leader < 0:
            limit = element.find('limit')
            assert limit is not None
            limit.set('lower', _text(rest + data[0]))
            limit.set('upper', _text(rest + data[0]))
            return True
        if np.any(data[2:5]) or leader not in self.joint_elements:
            self._note('an equality constraint of joints that is not linear is left out',
                       'equality', [name])  # fmt: skip
            return False
        offset = rest + data[0] - data[1] * model.qpos0[model.jnt_qposadr[leader]]
        SubElement(element, 'mimic', joint=self.joints[leader], multiplier=_text(data[1]),
                   offset=_text(offset))  # fmt: skip
        if self.drives.pop(self.joints[joint], None) is not None:
            self._note('a joint that follows another one has no motor', 'joint',
                       [self.joints[joint]])  # fmt: skip
        return True

    # ------------------------------------------------------------------------------ poses and feet

    def _poses(self, base: int | None) -> dict[str, JointValues]:
        """Return the keyframes as poses, one of them as 'standing'."""
        model = self.model
        poses = {self.keys[k]: self._pose(model.key_qpos[k], self.keys[k], base)
                 for k in range(model.nkey)}  # fmt: skip
        single = [model.jnt_qposadr[joint] for joint in self.joint_elements]
        if not poses and any(model.qpos0[k] for k in single if model.qpos0[k] != 1.0):
            poses['qpos0'] = self._pose(model.qpos0, 'qpos0', base)
        by_name = {name.lower(): name for name in reversed(list(poses))}
        wanted = (*STANDING_KEYS, *(() if base is not None else ('qpos0',)))
        chosen = next((by_name[key] for key in wanted if key in by_name), None)
        if chosen is not None and 'standing' not in poses:
            poses['standing'] = poses[chosen]
            self.notes.append(f"pose 'standing' is keyframe {chosen!r}")
        moving = [self.keys[k] for k in range(model.nkey) if np.any(model.key_qvel[k])]
        self._note('velocities of a keyframe are left out', 'key', moving)
        return poses

    def _pose(self, qpos: Array, key: str, base: int | None) -> JointValues:
        """Return the values of joints in a configuration of MuJoCo, within their ranges."""
        model, pose = self.model, dict[str, tuple[float, ...]]()
        if base is not None:
            start = int(model.jnt_qposadr[model.body_jntadr[base]])
            pose['root_joint'] = (*qpos[start : start + 3].tolist(), *_xyzw(qpos[start + 3 :]))
        beyond = []
        for joint, element in self.joint_elements.items():
            start, name = int(model.jnt_qposadr[joint]), self.joints[joint]
            if element.get('type') == 'spherical':
                pose[name] = _xyzw(qpos[start:])
                continue
            value = float(qpos[start])
            if model.jnt_limited[joint]:
                low, high = map(float, model.jnt_range[joint])
                beyond += [name] if not low <= value <= high else []
                value = min(max(value, low), high)
            pose[name] = (value,)
        self._note(f'keyframe {key!r} is moved into the range', 'joint', beyond)
        return pose

    def _feet(self) -> tuple[str, ...]:
        """Return the links at the ends of limbs that are called feet, if there are several."""
        model, feet = self.model, dict[int, tuple[str, ...]]()
        for body in self.kept:
            below = self._below(body)[1:]
            moving = any(model.body_jntnum[other] for other in below)
            first, number = int(model.body_geomadr[body]), int(model.body_geomnum[body])
            geoms = [geom for geom in range(first, first + number) if geom in self.touching]
            if body == 0 or moving or not geoms:
                continue
            names = [self.bodies[body], *(self.geoms[geom] for geom in geoms)]
            names += [self.classes.get(geom, '') for geom in geoms]
            names += [self.sites[s] for s in np.flatnonzero(model.site_bodyid == body).tolist()]
            if any(FOOT.search(name) for name in names):
                feet[body] = self.stands_for.get(self.bodies[body], (self.bodies[body],))
                feet.pop(int(model.body_parentid[body]), None)  # an ankle that carries toes
        return tuple(link for links in feet.values() for link in links)

    # --------------------------------------------------------------------------------------- notes

    def _note(self, what: str, kind: str, names: Sequence[str]) -> None:
        """Note something about elements; one note for all elements of which it is true."""
        if names:
            listed = self.noted.setdefault((what, kind), [])
            listed += [name for name in names if name not in listed]

    def _notes(self) -> tuple[str, ...]:
        """Return the notes as sentences."""
        sentences = []
        for (what, kind), names in self.noted.items():
            more = f' and {len(names) - MOST_NAMES} more' if len(names) > MOST_NAMES else ''
            sentences.append(f'{what}: {kind} {", ".join(names[:MOST_NAMES])}{more}')
        return (*sentences, *self.notes)

    def _note_the_rest(self) -> None:
        """Note everything in the model that has no place in a robot."""
        model = self.model
        joints = list(self.joint_elements)

        def of_joints(what: str, chosen: Callable[[int], Any]) -> None:
            self._note(what, 'joint', [self.joints[j] for j in joints if np.any(chosen(j))])

        self._note('stiffness of a ball joint is left out', 'joint', [
            self.joints[j] for j, element in self.joint_elements.items()
            if element.get('type') == 'spherical' and model.jnt_stiffness[j]
        ])  # fmt: skip
        if hasattr(model, 'jnt_stiffnesspoly'):  # from MuJoCo 4 on
            of_joints('stiffness that is no constant is left out',
                      lambda j: model.jnt_stiffnesspoly[j])  # fmt: skip
            of_joints('damping that is no constant is left out',
                      lambda j: model.dof_dampingpoly[model.jnt_dofadr[j]])  # fmt: skip
        of_joints('margin of a range is left out', lambda j: model.jnt_margin[j])
        of_joints('actuatorgravcomp is left out', lambda j: model.jnt_actgravcomp[j])
        self._note('gravcomp is left out: gravity acts on the whole robot', 'body',
                   [self.bodies[b] for b in self.kept if model.body_gravcomp[b]])  # fmt: skip
        self._note_contacts()
        counted = (
            ('ntendon', 'TENDON', 'tendons are left out', 'tendon'),
            ('nexclude', 'EXCLUDE', 'links touch each other only with with_self_collision; '
             'exclusions are left out', 'exclude'),
            ('npair', 'PAIR', 'pairs are left out, their geoms touch the ground', 'pair'),
            ('nsensor', 'SENSOR', 'sensors are left out', 'sensor'),
            ('nplugin', 'PLUGIN', 'plugins are left out', 'plugin'),
        )  # fmt: skip
        for number, kind, what, word in counted:
            code = getattr(self.mujoco.mjtObj, f'mjOBJ_{kind}')
            self._note(what, word, self._names(code, int(getattr(model, number)), word))
        mocap = [self.bodies[b] for b in range(model.nbody) if model.body_mocapid[b] >= 0]
        self._note('mocap bodies are left out', 'body', mocap)
        if model.geom_fluid.any():
            own = [self.geoms[g] for g in range(model.ngeom) if model.geom_fluid[g].any()]
            self._note('fluid forces are left out', 'geom', own)
        self._note_options()

    def _note_contacts(self) -> None:
        """Note the contact parameters of geoms, which the simulation has, not the robot."""
        model = self.model
        geoms = sorted(self.touching)
        frictions: dict[str, list[str]] = {}
        for geom in geoms:
            sliding, torsion, rolling = model.geom_friction[geom]
            kind = int(model.geom_condim[geom])
            words = f'{sliding:g}' if kind < 4 else f'{sliding:g} {torsion:g} {rolling:g}'
            frictions.setdefault(words, []).append(self.geoms[geom])
        for words, names in frictions.items():
            self._note(f'friction = {words} is a number of the simulation, not of the robot',
                       'geom', names)  # fmt: skip
        for what, usual in (
            ('condim', 3), ('margin', 0.0), ('gap', 0.0), ('priority', 0), ('solmix', 1.0),
            ('adhesion', 0.0), ('surfacevel', 0.0),
        ):  # fmt: skip
            values = getattr(model, f'geom_{what}', None)
            if values is not None:
                names = [self.geoms[g] for g in geoms if np.any(values[g] != usual)]
                self._note(f'{what} is left out', 'geom', names)
        fresh = self.mujoco.MjSpec()
        usual_geom = fresh.default.geom
        for what in ('solref', 'solimp'):
            default = np.array(getattr(usual_geom, what))
            text = f'{what} is a number of the contact model (Todorov), not of the robot'
            self._note(text, 'geom',
                       [self.geoms[g] for g in geoms
                        if np.any(getattr(model, f'geom_{what}')[g] != default)])  # fmt: skip
            of_limits, of_friction = getattr(model, f'jnt_{what}'), getattr(model, f'dof_{what}')
            self._note(text, 'joint',
                       [self.joints[j] for j in self.joint_elements
                        if np.any(of_limits[j] != default)
                        or np.any(of_friction[model.jnt_dofadr[j]] != default)])  # fmt: skip
            self._note(text, 'equality',
                       [self.equalities[i] for i in range(model.neq)
                        if np.any(getattr(model, f'eq_{what}')[i] != default)])  # fmt: skip

    def _note_options(self) -> None:
        """Note the options of the simulation that are not those of MuJoCo."""
        option, usual = self.model.opt, self.mujoco.MjOption()
        words = []
        for what in (
            'timestep', 'gravity', 'wind', 'density', 'viscosity', 'impratio', 'integrator',
            'cone', 'solver', 'iterations', 'noslip_iterations', 'tolerance', 'disableactuator',
        ):  # fmt: skip
            value = np.atleast_1d(getattr(option, what))
            if np.any(value != np.atleast_1d(getattr(usual, what))):
                words.append(f'{what} = {" ".join(f"{x:g}" for x in value.tolist())}')
        for flags, bits in (
            (int(option.disableflags), self.mujoco.mjtDisableBit),
            (int(option.enableflags), self.mujoco.mjtEnableBit),
        ):
            words += [
                f'{"disable" if bits is self.mujoco.mjtDisableBit else "enable"} {bit.name[7:]}'
                for bit in bits.__members__.values()
                if not bit.name.startswith('mjN') and flags & int(bit)
            ]
        if words:
            self.notes.append(
                f'<option> is of the simulation, not of the robot: {", ".join(words)}'
            )


# ----------------------------------------------------------------------------------------- numbers


def _text(*numbers: Any) -> str:
    """Return numbers as text from which the same numbers are read."""
    return ' '.join(repr(float(number)) for number in numbers)


def _unused(wanted: str, taken: Iterable[str]) -> str:
    """Return a name that is not taken: `wanted`, or with a number behind it."""
    known, name, k = set(taken), wanted, 2
    while name in known:
        name, k = f'{wanted}_{k}', k + 1
    return name


def _rotation(quaternion: Sequence[float]) -> Array:
    """Return the rotation matrix of w, x, y, z."""
    w, x, y, z = np.asarray(quaternion, dtype=float) / math.hypot(*quaternion)
    return np.array(pin.Quaternion(w, x, y, z).matrix())


def _placement(position: Sequence[float], quaternion: Sequence[float]) -> pin.SE3:
    return pin.SE3(_rotation(quaternion), np.array(position, dtype=float))


def _xyzw(quaternion: Array) -> tuple[float, float, float, float]:
    """Return w, x, y, z as x, y, z, w of length 1."""
    w, x, y, z = (quaternion[:4] / np.linalg.norm(quaternion[:4])).tolist()
    return x, y, z, w
