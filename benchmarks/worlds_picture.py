"""Draw robots on three generated grounds, each where its own trot took it: docs/worlds.png.

    python benchmarks/worlds_picture.py [docs/worlds.png]

Bodies are the convex hulls of the visual geometry; arrows are contact forces.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pinocchio as pin
from matplotlib.colors import LightSource
from mpl_toolkits.mplot3d.art3d import Poly3DCollection
from numpy.typing import NDArray
from scipy.spatial import ConvexHull, QhullError

from contact_sim import Simulator, load_robot
from contact_sim.control._trot import Trot
from contact_sim.robot._model import RobotModel
from contact_sim.terrain import TriangleMesh
from contact_sim.terrain._generator import ready_made

Array = NDArray[np.float64]
WORLDS = (('stairs', 0.1, 'go1', 4.5), ('grid', 0.1, 'anymal_b', 4.2), ('wave', 0.4, 'a1', 3.0))
"""Ground, its difficulty, robot and instant [s] of every panel."""
SPEED, REACH, SMALL = 0.4, 0.9, 0.1
GROUND, BODY = '#b9b2a3', '#4878a8'
WEIGHT_LENGTH = 0.4
"""Length of an arrow as strong as the weight of the robot [m]."""


def hulls(robot: RobotModel, q: Array) -> list[Array]:
    """Return the triangles (m, 3, 3) of every visual body at q, in world axes [m]."""
    model = robot.pinocchio_model
    shapes = pin.buildGeomFromUrdfString(
        model, robot.description, pin.GeometryType.VISUAL, package_dirs=list(robot.package_dirs)
    )
    data, placed = model.createData(), pin.GeometryData(shapes)
    pin.updateGeometryPlacements(model, data, shapes, placed, q)
    found = []
    for shape, pose in zip(shapes.geometryObjects, placed.oMg, strict=True):
        points = corners(shape.geometry) * shape.meshScale
        try:
            hull = ConvexHull(points)
        except QhullError:  # flat
            continue
        triangles = points[hull.simplices]
        a, b, c = np.moveaxis(triangles, 1, 0)
        inwards = np.einsum('ij,ij->i', np.cross(b - a, c - a), hull.equations[:, :3]) < 0.0
        triangles[inwards] = triangles[inwards, ::-1]
        found.append(triangles @ pose.rotation.T + pose.translation)
    return found


def corners(geometry: Any) -> Array:
    """Return points whose hull is the geometry, shape (n, 3)."""
    if hasattr(geometry, 'vertices'):
        return np.array(geometry.vertices())
    if hasattr(geometry, 'halfSide'):
        return np.array(np.meshgrid(*[(-s, s) for s in geometry.halfSide])).reshape(3, -1).T
    angle = np.linspace(0.0, 2.0 * np.pi, 17)[:-1]
    rim = geometry.radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    half = getattr(geometry, 'halfLength', geometry.radius)
    return np.array([[*point, z] for point in rim for z in (-half, half)])


def triangles_near(mesh: TriangleMesh, centre: Array) -> Array:
    """Return the ground around a place as small triangles (m, 3, 3), which sort well by depth."""
    found = mesh.vertices[mesh.triangles]
    while True:
        low, high = found[:, :, :2].min(axis=1), found[:, :, :2].max(axis=1)
        found = found[((low < centre[:2] + REACH) & (high > centre[:2] - REACH)).all(axis=1)]
        a, b, c = np.moveaxis(found, 1, 0)
        sides = np.stack([np.linalg.norm(x - y, axis=1) for x, y in ((a, b), (b, c), (c, a))])
        large = sides.max(axis=0) > SMALL
        if not large.any():
            return np.asarray(found)
        a, b, c = a[large], b[large], c[large]
        d, e, f = (a + b) / 2.0, (b + c) / 2.0, (c + a) / 2.0
        quarters = [
            np.stack(three, axis=1) for three in ((a, d, f), (d, b, e), (f, e, c), (d, e, f))
        ]
        found = np.concatenate([found[~large], *quarters])


def shaded(triangles: Array, colour: str) -> Array:
    """Return the colours of triangles under one lamp, shape (m, 3)."""
    a, b, c = np.moveaxis(triangles, 1, 0)
    normal = np.cross(b - a, c - a)
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-12)
    light = 0.55 + 0.45 * np.clip(normal @ LightSource(azdeg=300, altdeg=55).direction, 0.0, 1.0)
    base = np.array([int(colour[k : k + 2], 16) / 255.0 for k in (1, 3, 5)])
    return np.asarray(np.clip(light[:, None] * base, 0.0, 1.0))


def draw(axes: Any, ground: str, difficulty: float, name: str, seconds: float) -> None:
    """Let a robot trot on a ground and draw where it is then."""
    robot, terrain = load_robot(name), ready_made(ground, difficulty, 1)
    sim = Simulator(robot, 'ncp', terrain)
    trot = Trot(robot)
    trot.velocity = (SPEED, 0.0, 0.0)
    while sim.time < seconds:
        report = sim.step(trot.effort(sim.time, sim.q, sim.v))
    parts = [field.as_mesh() for field in terrain.fields]
    meshes = parts if terrain.mesh is None else [*parts, terrain.mesh]
    ground_triangles = np.concatenate([triangles_near(mesh, sim.q) for mesh in meshes])
    bodies = np.concatenate(hulls(robot, sim.q))
    colours = np.concatenate([shaded(ground_triangles, GROUND), shaded(bodies, BODY)])
    together = np.concatenate([ground_triangles, bodies])
    axes.add_collection3d(
        Poly3DCollection(together, facecolors=colours, edgecolors=colours, lw=0.3)
    )
    weight = 9.81 * robot.total_mass
    for foot, force in zip(report.contacts.position, report.contacts.force, strict=True):
        axes.quiver(
            *foot, *(WEIGHT_LENGTH / weight * force), color='#c8102e', linewidth=2.0, zorder=3
        )
    for setter, centre in zip((axes.set_xlim, axes.set_ylim), sim.q[:2], strict=True):
        setter(centre - 0.8, centre + 0.8)
    axes.set_zlim(sim.q[2] - 0.7, sim.q[2] + 0.5)
    axes.set_box_aspect((1.6, 1.6, 1.2), zoom=1.6)
    axes.view_init(elev=22.0, azim=-60.0)
    axes.computed_zorder = False
    axes.set_axis_off()
    axes.set_title(f'{name}, terrain:={ground}', y=0.88)


def main() -> None:
    """Draw the picture."""
    path = Path(sys.argv[1] if len(sys.argv) > 1 else 'docs/worlds.png')
    figure = plt.figure(figsize=(12.0, 4.0))
    for k, world in enumerate(WORLDS):
        draw(figure.add_subplot(1, 3, k + 1, projection='3d'), *world)
    figure.subplots_adjust(left=0.0, right=1.0, bottom=0.0, top=1.0, wspace=0.0)
    figure.savefig(path, dpi=110)


if __name__ == '__main__':
    main()
