"""Linearisation: takes the next step of a simulation in arrays of its own, and linearises it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from contact_sim._types import Array, Indices
from contact_sim.arrays._views import address_of, places_of_worlds
from contact_sim.collision._detection import leaf_dof
from contact_sim.contact_models._base import TimeSteppingModel, fill_placements
from contact_sim.contact_models._impact_sequence import SEQUENTIAL
from contact_sim.contact_models._stages import DIRECT, READY
from contact_sim.derivatives import _fields as d
from contact_sim.derivatives._compiled import COMPILED, copy_parts
from contact_sim.derivatives._differences import (
    OF_COMPLIANT,
    OF_SAP,
    OF_TODOROV,
    Differences,
    given_fields,
    last_stage,
)
from contact_sim.derivatives._pair_geometry import UNKNOWN
from contact_sim.derivatives._result import StepDerivatives
from contact_sim.dynamics._integration import MOMENTUM
from contact_sim.errors import InvalidInput
from contact_sim.step._workspace import Workspace

LastStage = tuple[Array, Array, Array, Array]
KEPT = (
    'armature', 'damping', 'restitution', 'stabilisation', 'damping_inertia', 'law',
    'limit_restitution',
)  # fmt: skip
"""Constants of a step that derivatives to parameters read."""


class Linearisation:
    """Arrays in which the steps of one simulation are linearised.

    Args:
        workspace: that of the simulation; its arrays are read, never written.
        model: the contact model of the simulation.

    Raises:
        InvalidInput: a simulation of which there are no derivatives; the message says why.
    """

    def __init__(self, workspace: Workspace, model: Any) -> None:
        check_supported(workspace, model)
        self._source, self.model, self.law = workspace, model, law_name(model)
        self._deep = workspace.sizes.deep  # derivatives need the matrix itself
        self.work = workspace.with_formed_inertia() if self._deep else workspace.copy()
        self.sizes = sizes = self.work.sizes
        # a stepper of its own would bind, and so change, the constants of the law
        self._advance = model.compiled.advance
        self._places_of_work = places_of_worlds(*self.work.arrays)
        self._address = address_of(self._places_of_work)
        self._places = places = d.places_of(sizes)
        self.layout = d.derivative_layout(places)
        self.numbers = np.zeros((1, length_of(places, False)))
        self.indices = np.zeros((1, length_of(places, True)), dtype=np.int64)
        self._linearise = COMPILED[self.law].linearise
        tree = self.work
        for j in range(1, len(tree.kind)):
            dofs = slice(tree.v_index[j], tree.v_index[j + 1])
            self.view('dof_first')[dofs], self.view('dof_body')[dofs] = dofs.start, tree.parent[j]
        self._copied = copied_parts(self.work)
        self._last_differs = sizes.nb > 0 or self.work.integrator[0] == MOMENTUM
        self._slow = sizes.nb > 0 or self.work.damping_inertia[0] != 0.0
        # effective masses that are constant, or for which there is a formula (_weight_motion.py)
        weight, diagonal = (getattr(model.parameters, name, '') for name in ('weight', 'diagonal'))
        known = self.law == 'compliant' or weight == DIAGONAL
        known |= self.law == 'todorov' and diagonal == REFERENCE
        self._weighs = self.law in WEIGHTS and not known
        self._weights = WEIGHTS.get(self.law, OF_TODOROV)
        self._counts, self._inputs = self.view('counts'), places['velocity'][2][1]
        self._on_weight = self.view('on_weight')
        self._kept = slice(0, places['on_weight'][1])
        self._impulse = slice(*places['impulse'][:2])
        self._turned = slice(*places['force_slope'][:2])
        ends = [self.work._places[name] for name in KEPT]
        self._constants = slice(min(e[0] for e in ends), max(e[1] for e in ends))

    def fits(self, workspace: Workspace, model: Any) -> bool:
        """Return whether these are the arrays of that simulation."""
        return self._source is workspace and self.model is model

    def view(self, name: str) -> Any:
        """Return a field of the linearisation."""
        start, stop, shape = self._places[name]
        array = self.indices if name in d.INDEX_FIELDS else self.numbers
        return array[0, start:stop].reshape(shape)

    def of_step(
        self, command: Array, wrenches: Mapping[str, ArrayLike] | None = None
    ) -> StepDerivatives:
        """Return the derivatives of the step that the simulation would take now.

        Args:
            command: joint efforts [N m], shape (n_joints,).
            wrenches: external wrenches, which the arrays of the simulation contain already.

        Raises:
            InvalidInput: the step would not be taken, or has no derivatives.
        """
        source, work = self._source, self.work
        if self._deep:
            self._take_values(source.numbers[0], source.indices[0])
        else:
            copy_parts(source.numbers, source.indices, work.numbers, work.indices, self._copied)
        if wrenches:
            slope = wrench_slope(work, wrenches, self.view('dof_first'))
            self.view('pushed')[:] = float(work.data.time_step[0]) * slope
        redundant, last = self._take(command, bool(wrenches))
        return StepDerivatives(self, redundant, last)

    def of_world(self, numbers: Array, indices: Any, command: Array) -> bool:
        """Fill the derivatives of the step of one of many worlds; return whether redundant."""
        if self._deep:
            self._take_values(numbers, indices)
        else:
            self.work.numbers[0], self.work.indices[0] = numbers, indices
        return self._take(command, False)[0]

    def _take_values(self, numbers: Array, indices: Any) -> None:
        """Take the values of arrays without a mass matrix, and fill that."""
        self.work.take_values(numbers, indices, self._source._places)
        fill_placements(*self.work.arrays)

    def _take(self, command: Array, pushed: bool) -> tuple[bool, LastStage | None]:
        """Take the step in the arrays and linearise it; `pushed`: external wrenches act."""
        work = self.work
        work.command[:], work.control[0] = command, DIRECT
        self._advance(self._address, 1)
        if work.status[0] != READY:
            raise InvalidInput(
                'derivatives: the step from here is not finite, or its efforts are not'
            )
        counts = self._counts
        counts[:] = 0
        counts[d.PUSHED] = pushed
        self._linearise(*work.arrays, self.numbers, self.indices, self.layout)
        if self._slow or counts[d.NEEDS_GIVEN] or self._has_weights():
            self._fill_given()
            counts[:] = 0
            counts[d.GIVEN], counts[d.PUSHED] = 1, pushed
            self._linearise(*work.arrays, self.numbers, self.indices, self.layout)
        if counts[d.UNSUPPORTED] == d.GUARDED:
            raise InvalidInput(
                'derivatives: the energy guard has reduced the restitution of this step; that '
                'share has no derivative'
            )
        redundant = bool(counts[d.SINGULAR])
        return redundant, self._fill_last_stage() if self._last_differs else None

    def _has_weights(self) -> bool:
        """Return whether the compliance of a row changes with q."""
        return self._weighs and bool(self._on_weight[: self._counts[d.ROWS]].any())

    def _fill_given(self) -> None:
        """Fill what is known by differences of the geometry."""
        work, data, sizes = self.work, self.work.data, self.sizes
        differences = Differences(work, self._weights)
        v_law = self.view('v_law') if self._counts[d.UNDAMPED] else data.v_next
        share = float(work.damping_inertia[0])
        given = given_fields(
            differences, data, v_law.copy(), share, sizes, self.view('surface') != UNKNOWN
        )
        for name, values in given.items():
            if name != 'weights':
                self.view(name)[:] = values
        n = int(self._counts[d.ROWS] - self._counts[d.BILATERAL])
        self.view('weight_slope')[:n] = given['weights'][:n].reshape(n, 2 * sizes.nv)

    def _fill_last_stage(self) -> LastStage:
        """Fill the results of a last stage that is known by differences; return it."""
        nv = self.sizes.nv
        stage = last_stage(Differences(self.work, self._weights), self.work.data)
        rows = stage[2] @ self.view('free')
        rows[:, :nv] += stage[0]
        rows[:, nv : 2 * nv] += stage[1]
        self.view('configuration')[:], self.view('velocity')[:] = rows[:nv], rows[nv:]
        return stage

    def kept(self) -> tuple[Array, Array, Array, Any, Array]:
        """Return copies of what results read: fields, dλ, ∂F, indices and constants."""
        solved, turned = self._counts[d.SOLVED], 3 * self._counts[d.CONTACTS]
        impulse, slope = self._impulse.start, self._turned.start
        return (
            self.numbers[0, self._kept].copy(),
            self.numbers[0, impulse : impulse + int(solved) * self._inputs].copy(),
            self.numbers[0, slope : slope + int(turned) * self.sizes.nv].copy(),
            self.indices[0].copy(), self.work.numbers[0, self._constants].copy(),
        )  # fmt: skip

    def fields_of(self, numbers: Array, indices: Any, constants: Array) -> dict[str, Any]:
        """Return the views of kept copies by name."""
        fields: dict[str, Any] = {}
        for name, (start, stop, shape) in self._places.items():
            if name in d.INDEX_FIELDS:
                fields[name] = indices[start:stop].reshape(shape)
            elif stop <= self._kept.stop:
                fields[name] = numbers[start:stop].reshape(shape)
        first = self._constants.start
        for name in KEPT:
            start, stop, shape = self.work._places[name]
            fields[name] = constants[start - first : stop - first].reshape(shape)
        return fields


DIAGONAL, REFERENCE = 'mass_diagonal', 'reference'
WEIGHTS = {
    'todorov': OF_TODOROV, 'todorov 2014': OF_COMPLIANT, 'sap': OF_SAP, 'compliant': OF_COMPLIANT,
}  # fmt: skip
"""How laws make the effective masses that scale their compliance."""


def wrench_slope(work: Workspace, wrenches: Mapping[str, ArrayLike], first: Any) -> Array:
    """Return ∂τ/∂q of wrenches in world axes at the origins of frames, shape (nv, nv).

    Of a force F at p and a torque N is τ_k = J_k·F + ω_k·N, with the velocity J_k of p under S_k.
    A change of q_m turns S_k and p together, or moves p alone, where joint m is not before dof k.
    `work` is at the start of the step; `first` the first dof of the joint of every dof, (nv,).
    """
    slope, tree = np.zeros((work.sizes.nv, work.sizes.nv)), work.tree
    for name, value in wrenches.items():
        frame = work.model.frames[work.model.getFrameId(name)]
        body, branch = tree.body_of_joint[frame.parentJoint], []
        k = leaf_dof(work.model.joints[frame.parentJoint])
        while k >= 0:
            branch.append(k)
            k = int(work.dof_parent[k])
        turn, place = work.pose[body, :9].reshape(3, 3).T, work.pose[body, 9:]
        p = place + turn @ (tree.axes[body].T @ frame.placement.translation) - work.origin
        wrench, dofs = np.asarray(value, float), np.array(branch, dtype=int)
        force, torque = pin.skew(wrench[:3]), pin.skew(wrench[3:])  # a @ skew(b) = a × b
        omega = work.columns[dofs, 3:]
        J = work.columns[dofs, :3] + omega @ pin.skew(p)
        turned = (J @ force + omega @ torque) @ omega.T
        moved = omega @ force.T @ J.T
        along = dofs[:, None] >= first[dofs][None]
        slope[dofs[:, None], dofs] += np.where(along, turned, moved)
    return slope


def length_of(places: Mapping[str, tuple[int, int, Any]], indices: bool) -> int:
    """Return the length of one of the arrays."""
    return max(
        stop for name, (_, stop, _) in places.items() if (name in d.INDEX_FIELDS) == indices
    )


def copied_parts(work: Workspace) -> Indices:
    """Return the parts of the numbers that a step reads: state, kinematics and settings."""
    places = work._places
    return np.array([
        (0, work.sizes.length),
        (places['origin'][0], places['mass_matrix'][1]),
        (places['fast'][0], places['fast'][1]),
        (places['terrain'][0], places['limit_restitution'][1]),
        (places['bilateral_places'][0], places['bilateral_laws'][1]),
        (places['external'][0], work.numbers.shape[1]),
    ], dtype=np.int64)  # fmt: skip


def law_name(model: TimeSteppingModel) -> str:
    """Return the name of the linearisation of a law."""
    return 'todorov 2014' if getattr(model.parameters, 'form', '') == '2014' else model.name


REFUSALS: tuple[tuple[str, Callable[[Workspace, Any], bool]], ...] = (
    (
        'contact model {name!r} advances by events; use a time-stepping model',
        lambda work, model: not isinstance(model, TimeSteppingModel),
    ),
    (
        'contact model {name!r} is not supported',
        lambda work, model: law_name(model) not in COMPILED,
    ),
    (
        'joints that only Pinocchio knows are unsupported',
        lambda work, model: bool(work.tree.unsupported),
    ),
    (
        'todorov with damped joints and bilateral constraints is unsupported; use joints without '
        "damping, or form='2014'",
        lambda work, model: (
            law_name(model) == 'todorov' and work.sizes.nb > 0 and bool(work.damping.any())
        ),
    ),
    (
        "springs of joints are unsupported under form='2014'",
        lambda work, model: law_name(model) == 'todorov 2014' and work.sizes.n_springs > 0,
    ),
    (
        'torsional and rolling friction are unsupported',
        lambda work, model: work.has_moments,
    ),
    (
        'constraints that are Python functions are unsupported',
        lambda work, model: bool(work.table.functions),
    ),
    (
        "multiple_impacts='sequential' is unsupported; use 'simultaneous'",
        lambda work, model: getattr(model.parameters, 'multiple_impacts', '') == SEQUENTIAL,
    ),
    (
        'solver {solver!r} of ncp answers another law; use exact, pgs or staggered',
        lambda work, model: getattr(model.parameters, 'solver', '') in ('raisim', 'pgs_box'),
    ),
)
"""What has no derivatives, and how to tell."""


def check_supported(work: Workspace, model: Any) -> None:
    """Raise InvalidInput for a simulation of which there are no derivatives."""
    for message, applies in REFUSALS:
        if applies(work, model):
            text = message.format(name=model.name, solver=getattr(model.parameters, 'solver', ''))
            raise InvalidInput(f'derivatives: {text}')
