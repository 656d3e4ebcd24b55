"""Contact of spheres on free bodies with the ground: the contact problem from the sparse system.

    G = J_c K⁻¹ J_cᵀ,   u_f = J_c v_f

with K⁻¹ f the accelerations of the system (system.py) under forces f: joints answer contact
forces at once. What is asked, and of whom, is as in `Simulator` (theory 0, 2.11).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import block_diag

from contact_sim.collision.slots import UNUSED_GAP
from contact_sim.collision.surface import tangents
from contact_sim.collision.terrain import Terrain
from contact_sim.contact.bias import gap_bias
from contact_sim.contact.problem import ContactProblem
from contact_sim.contact.solution import SolverReport
from contact_sim.contact.workspace import BAUMGARTE
from contact_sim.contact_models.time_stepping.ncp import Ncp
from contact_sim.maximal.bodies import Array, BodyState, cross, turned
from contact_sim.maximal.mechanism import Mechanism
from contact_sim.maximal.rows import Index

Response = Callable[[Array], tuple[Array, Array]]
"""Forces on the bodies (n, nb, 6) → accelerations (n, nb, 6) and multipliers (n, m)."""


@dataclass(frozen=True, eq=False)
class Touches:
    """The contacts that spheres may have, nc of them."""

    body: Index
    """Shape (nc,)."""
    gap: Array
    """Signed distance [m], shape (nc,)."""
    jacobian: Array
    """Velocity of the contact point, rows t1, t2, n, per velocity of its body, (nc, 3, 6)."""

    def wrenches(self, bodies: int) -> Array:
        """Return what unit forces along each row exert on all bodies, shape (3 nc, nb, 6)."""
        found = np.zeros((3 * len(self.body), bodies, 6))
        found[np.arange(len(found)), np.repeat(self.body, 3)] = self.jacobian.reshape(-1, 6)
        return found


@dataclass(frozen=True, eq=False)
class ContactForces:
    """What the ground did in a step."""

    acceleration: Array
    """That it adds to the bodies, shape (nb, 6)."""
    held: Array
    """What it adds to the multipliers of the joints, shape (m,)."""
    force: Array
    """On each contact point of the robot [N], world axes, shape (n, 3)."""
    solver: SolverReport | None
    """How the problem was solved; None: nothing touched."""


class GroundContacts:
    """Spheres of a robot on a ground with friction, without restitution.

    Args:
        mechanism: the free bodies.
        terrain: the ground.
        friction: μ [-].
        model: the law.
    """

    def __init__(
        self, mechanism: Mechanism, terrain: Terrain, friction: float, model: Ncp
    ) -> None:
        self._terrain, self._friction, self._model = terrain, friction, model
        robot, tree = mechanism.robot, mechanism.tree
        points = robot.candidates
        joints = [robot.pinocchio_model.getJointId(point.joint) for point in points]
        self._body: Index = tree.body_of_joint[joints].astype(np.intp)
        offsets = np.array([point.offset for point in points]).reshape(-1, 3)
        own = turned(tree.axes[self._body].transpose(0, 2, 1), offsets)
        self._offset = own - tree.body[self._body, 1:4]
        self._radius = np.array([point.radius for point in points])

    def touches(self, state: BodyState) -> tuple[Touches, Array, Index]:
        """Return the contacts, their frames (nc, 3, 3), and the sphere of each (nc,)."""
        lever = turned(state.rotation[self._body], self._offset)
        distance, normals = self._terrain.contacts(state.position[self._body] + lever)
        sphere, slot = np.nonzero(distance < UNUSED_GAP)
        gap, n = distance[sphere, slot] - self._radius[sphere], normals[sphere, slot]
        frames = np.array([[*tangents(*normal), normal] for normal in n]).reshape(-1, 3, 3)
        # halfway between sphere and ground, see collision.detect.contact_rows
        at = lever[sphere] - (self._radius[sphere] + 0.5 * gap)[:, None] * n
        rows = np.concatenate([frames, cross(at[:, None], frames)], axis=2)
        return Touches(self._body[sphere], gap, rows), frames, sphere

    def answer(
        self, state: BodyState, blocks: Array, free: Array, h: float, response: Response
    ) -> ContactForces:
        """Return what the ground does in a step.

        Args:
            state: at the start of the step.
            blocks: of M, shape (nb, 6, 6).
            free: velocities after the step without contact, shape (nb, 6).
            h: time step [s].
            response: of the bodies to forces.
        """
        every, frames, sphere = self.touches(state)
        force = np.zeros((len(self._body), 3))
        after, solver = free, None
        active = np.zeros(len(every.gap), dtype=bool)
        added: tuple[Array, Array] = (np.zeros_like(free), response(0.0 * free)[1])
        impulse = np.zeros((0, 3))
        while (closing := (self._closing(every, after, h) | active)).sum() > active.sum():
            active = closing
            some = Touches(every.body[active], every.gap[active], every.jacobian[active])
            moves, holds = response(some.wrenches(len(free)))
            problem = self._problem(some, state, blocks, free, h, moves)
            solution = self._model.solve(problem)
            rates, solver = solution.impulse / h, solution.solver
            added = np.tensordot(rates, moves, 1), rates @ holds
            after, impulse = free + h * added[0], solution.impulse.reshape(-1, 3)
        along = (impulse[:, None] @ frames[active])[:, 0] / h
        np.add.at(force, sphere[active], along)
        return ContactForces(*added, force, solver)

    @staticmethod
    def _closing(touches: Touches, velocity: Array, h: float) -> Array:
        """Return which contacts close within the step at these velocities, shape (nc,)."""
        approach = (touches.jacobian[:, 2] * velocity[touches.body]).sum(axis=1)
        return np.asarray(touches.gap + h * approach < 0.0)

    def _problem(
        self, some: Touches, state: BodyState, blocks: Array, free: Array, h: float, moves: Array
    ) -> ContactProblem:
        """Return the contact problem of some contacts."""
        J = some.wrenches(len(free))[:, 1:].reshape(3 * len(some.gap), -1)
        G = J @ moves[:, 1:].reshape(len(moves), -1).T
        bias = np.zeros((len(some.gap), 3))
        bias[:, 2] = [gap_bias(gap, h, BAUMGARTE) for gap in some.gap]
        return ContactProblem.from_dynamics(
            block_diag(*blocks[1:]), J, state.velocity[1:].ravel(), free[1:].ravel(),
            np.full(len(some.gap), self._friction), some.gap, bias.ravel(), h,
            delassus=0.5 * (G + G.T),
        )  # fmt: skip
