"""Stopping distances of a box under every preset, in PyBullet, DART and jiminy.

    python benchmarks/engine_presets.py [--angles 0 22.5 45]

A box of 0.2 x 0.2 x 0.04 m on a plane with μ = 0.4 is launched at 1 m/s, at angles to the tangents
of its contacts. Circular friction stops it after v²/(2 μ g) = 127.4 mm in every direction,
friction that is bounded per tangent earlier between the tangents. h = 1 ms. Engines that are not
installed are left out; jiminy may be in an environment of its own, whose interpreter JIMINY_PYTHON
names.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from contact_sim import Simulator, loose_box, presets

SIDES, MASS, FRICTION, STEP = (0.2, 0.2, 0.04), 1.0, 0.4, 1e-3
GRAVITY, SPEED = 9.81, 1.0
SETTLING, SLIDING = 200, 1000  # steps
Run = Callable[[float], float]
"""Angle [rad] → distance [m]."""


def under_preset(name: str) -> Run:
    """Return how far the box slides under a preset."""

    def run(angle: float) -> float:
        sim = Simulator(loose_box(SIDES, MASS), name, friction=FRICTION, time_step=STEP)
        for _ in range(SETTLING):
            sim.step([])
        start, v = sim.q[:2].copy(), np.zeros(6)
        v[:2] = SPEED * math.cos(angle), SPEED * math.sin(angle)
        sim.reset(sim.q, v)
        for _ in range(SLIDING):
            sim.step([])
        return float(np.linalg.norm(sim.q[:2] - start))

    return run


def in_bullet(cone: bool) -> Run:
    """Return how far it slides in PyBullet, with circular friction or with boxes."""
    import pybullet

    def run(angle: float) -> float:
        client = pybullet.connect(pybullet.DIRECT)
        pybullet.setGravity(0.0, 0.0, -GRAVITY)
        pybullet.setTimeStep(STEP)
        pybullet.setPhysicsEngineParameter(enableConeFriction=int(cone))
        half = [0.5 * side for side in SIDES]
        shape = pybullet.createCollisionShape(pybullet.GEOM_BOX, halfExtents=half)
        floor = pybullet.createMultiBody(0, pybullet.createCollisionShape(pybullet.GEOM_PLANE))
        box = pybullet.createMultiBody(MASS, shape, -1, [0.0, 0.0, half[2] + 1e-4])
        for body in (floor, box):  # the friction of a pair is the product
            pybullet.changeDynamics(
                body, -1, lateralFriction=math.sqrt(FRICTION), rollingFriction=0.0,
                spinningFriction=0.0, restitution=0.0, linearDamping=0.0, angularDamping=0.0,
            )  # fmt: skip
        for _ in range(SETTLING):
            pybullet.stepSimulation()
        start = np.array(pybullet.getBasePositionAndOrientation(box)[0])
        heading = [SPEED * math.cos(angle), SPEED * math.sin(angle), 0.0]
        pybullet.resetBaseVelocity(box, heading, [0.0, 0.0, 0.0])
        for _ in range(SLIDING):
            pybullet.stepSimulation()
        end = np.array(pybullet.getBasePositionAndOrientation(box)[0])
        pybullet.disconnect(client)
        return float(np.linalg.norm((end - start)[:2]))

    return run


def in_dart() -> Run:
    """Return how far it slides in DART."""
    import dartpy

    def body(pair: Any, sides: list[float], place: list[float]) -> Any:
        node = pair[1].createShapeNode(dartpy.dynamics.BoxShape(sides))
        node.createCollisionAspect()
        node.createDynamicsAspect().setFrictionCoeff(FRICTION)
        node.setRelativeTranslation(place)
        return pair[1]

    def run(angle: float) -> float:
        world = dartpy.simulation.World()
        world.setGravity([0.0, 0.0, -GRAVITY])
        world.setTimeStep(STEP)
        floor, box = dartpy.dynamics.Skeleton('floor'), dartpy.dynamics.Skeleton('box')
        body(floor.createWeldJointAndBodyNodePair(), [10.0, 10.0, 1.0], [0.0, 0.0, -0.5])
        body(box.createFreeJointAndBodyNodePair(), list(SIDES), [0.0, 0.0, 0.0]).setMass(MASS)
        world.addSkeleton(floor)
        world.addSkeleton(box)
        box.setPositions([0.0, 0.0, 0.0, 0.0, 0.0, 0.5 * SIDES[2] + 1e-4])
        for _ in range(SETTLING):
            world.step()
        start, v = np.array(box.getPositions())[3:5], np.zeros(6)
        v[3:5] = SPEED * math.cos(angle), SPEED * math.sin(angle)
        box.setVelocities(v)
        for _ in range(SLIDING):
            world.step()
        return float(np.linalg.norm(np.array(box.getPositions())[3:5] - start))

    return run


def with_jiminy(model: str) -> Run:
    """Return how far it slides in jiminy, under a contact model at its defaults."""
    from jiminy_peer import Launch, in_jiminy

    x, y, z = SIDES
    corners = [(0.5 * i * x, 0.5 * j * y, -0.5 * z) for i in (-1, 1) for j in (-1, 1)]
    squares = (y * y + z * z, x * x + z * z, x * x + y * y)
    body = Launch(
        MASS, tuple(MASS * square / 12.0 for square in squares), corners,
        q=[0.0, 0.0, 0.5 * z + 1e-4, 0.0, 0.0, 0.0, 1.0], v=[0.0] * 6, steps=SETTLING,
        time_step=STEP, contacts={'model': model, 'friction': FRICTION},
    )  # fmt: skip
    [(q, _)] = in_jiminy(body)
    settled = q[-1]

    def run(angle: float) -> float:
        heading = [SPEED * math.cos(angle), SPEED * math.sin(angle), 0.0, 0.0, 0.0, 0.0]
        [(q, _)] = in_jiminy(replace(body, q=settled.tolist(), v=heading, steps=SLIDING))
        return float(np.linalg.norm((q[-1] - settled)[:2]))

    return run


PEERS: dict[str, Callable[[], Run]] = {
    'PyBullet': lambda: in_bullet(True),
    'PyBullet, enableConeFriction=0': lambda: in_bullet(False),
    'DART': in_dart,
    'jiminy, constraint': lambda: with_jiminy('constraint'),
    'jiminy, spring_damper': lambda: with_jiminy('spring_damper'),
}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else '')
    parser.add_argument('--angles', nargs='+', type=float, default=[0.0, 22.5, 45.0])
    angles = parser.parse_args().angles
    print(f'{"mm":32}' + ''.join(f'{angle:8.1f}°' for angle in angles))
    rows: dict[str, Callable[[], Run]] = {name: partial(under_preset, name) for name in presets()}
    for name, make in {**rows, **PEERS}.items():
        try:
            run = make()
        except ImportError as error:
            print(f'{name:32}not installed: {error}')
            continue
        ways = [1e3 * run(math.radians(angle)) for angle in angles]
        print(f'{name:32}' + ''.join(f'{way:9.2f}' for way in ways), flush=True)


if __name__ == '__main__':
    main()
