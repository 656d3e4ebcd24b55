"""Contact points, frames, Jacobian and J̇ v on every ground, against Pinocchio and differences."""

import numpy as np
import pinocchio as pin
import pytest
from terrains import GROUNDS
from test_surface import difference

from contact_sim.collision._detection import contact_drift, contact_rows, detect
from contact_sim.collision._surface import PLANES

GRAVITY = np.array([0.3, -0.2, -9.81])
ORIGIN = np.array([0.4, -0.7, 0.2])


class Probe:
    """A free base with a leg of three joints and a slide, five spheres and one on the world."""

    def __init__(self, ground, random):
        model = pin.Model()
        self.base = joint = model.addJoint(
            0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), 'base'
        )
        for k, kind in enumerate([pin.JointModelRX(), pin.JointModelRY(), pin.JointModelPZ()]):
            place = pin.SE3(pin.exp3(random.normal(size=3)), random.uniform(-0.3, 0.3, 3))
            joint = model.addJoint(joint, kind, place, f'joint_{k}')
        self.ground, self.model, self.data = ground, model, model.createData()
        self.joint = np.array([1, 1, 2, 3, 4, 0])
        self.offset = random.uniform(-0.3, 0.3, (6, 3))
        self.offset[5] = 0.0, 0.0, 0.3
        self.radius = np.array([0.0, 0.05, 0.02, 0.0, 0.1, 0.03])
        leaf = [
            model.joints[j].idx_v + model.joints[j].nv - 1 if j else -1
            for j in self.joint.tolist()
        ]
        self.slots = ground.features * len(self.joint)
        self.leaf_dof = np.repeat(leaf, ground.features)
        self.carrier = np.repeat(self.joint, ground.features)
        self.dof_parent = np.array(list(self.data.parents_fromRow)[: model.nv])

    def pose(self, q):
        pin.forwardKinematics(self.model, self.data, q)
        return np.array([[*M.rotation.flatten('F'), *M.translation] for M in self.data.oMi])

    def detect(self, q):
        """Return position, frame, gap, feature at q."""
        n, ground = self.slots, self.ground
        out = np.zeros((n, 3)), np.zeros((n, 3, 3)), np.zeros(n), np.zeros(n)
        spheres = self.joint, self.offset, self.radius
        detect(ground.ground, self.pose(q), *spheres, *out)
        return out

    def velocity(self, q, v, halfway=False):
        """Return u = J v, rows of the slots."""
        position, frame, gap, feature = self.detect(q)
        pin.computeJointJacobians(self.model, self.data, q)
        columns = np.array(self.data.J.T)
        columns[:, :3] += np.cross(columns[:, 3:], ORIGIN)
        rows = np.zeros((self.model.nv, 3 * self.slots))
        contact_rows(
            columns, ORIGIN, (self.leaf_dof, feature), self.dof_parent, position, frame,
            gap if halfway else np.zeros(self.slots), rows,
        )  # fmt: skip
        return rows.T @ v

    def drift(self, q, v):
        """Return J̇ v from Pinocchio's twists, and accelerations with −gravity added."""
        _, frame, _, feature = self.detect(q)
        pin.forwardKinematics(self.model, self.data, q, v, np.zeros(self.model.nv))
        places = self.data.oMi
        twist = np.array([M.act(m).vector for M, m in zip(places, self.data.v, strict=True)])
        bias = np.array([M.act(m).vector for M, m in zip(places, self.data.a, strict=True)])
        for motion in (twist, bias):
            motion[:, :3] += np.cross(motion[:, 3:], ORIGIN)
        bias[:, :3] -= GRAVITY
        out = np.zeros(3 * self.slots)
        contact_drift(
            (self.joint, self.offset, self.radius), (twist, bias, ORIGIN),
            self.ground.ground, self.pose(q), feature, frame, GRAVITY, out,
        )  # fmt: skip
        return out


def cases(name, count=8):
    """Yield a probe, q and v; frames do not jump near q, where |n_x| = 0.9."""
    random = np.random.default_rng(5)
    probe = Probe(GROUNDS[name], random)
    while count:
        q = pin.integrate(
            probe.model, pin.neutral(probe.model), random.normal(0.0, 0.5, probe.model.nv)
        )
        v = random.normal(0.0, 1.0, probe.model.nv)
        _, frame, gap, _ = probe.detect(q)
        near = probe.ground.kind == PLANES or np.abs(gap).max() < 0.5  # and far from an axis
        if near and np.abs(np.abs(frame[:, 2, 0]) - 0.9).min() > 0.05:
            count -= 1
            yield probe, q, v


@pytest.mark.parametrize('name', GROUNDS)
def test_contact_points_are_nearest_and_frames_orthonormal(name):
    ground = GROUNDS[name]
    for probe, q, _ in cases(name):
        position, frame, gap, feature = probe.detect(q)
        pose = probe.pose(q)
        for i in range(probe.slots):
            c = i // ground.features
            assert feature[i] == i % ground.features
            P = pose[probe.joint[c]]
            centre = P[:9].reshape(3, 3).T @ probe.offset[c] + P[9:]
            t1, t2, n = frame[i]
            assert np.abs(frame[i] @ frame[i].T - np.eye(3)).max() < 1e-14
            assert np.abs(np.cross(t1, t2) - n).max() < 1e-14
            assert position[i] == pytest.approx(centre - probe.radius[c] * n, abs=1e-14)
        nearest = gap.reshape(-1, ground.features).min(axis=1)
        best = gap.reshape(-1, ground.features).argmin(axis=1) + ground.features * np.arange(6)
        # of the nearest feature; behind two planes the surface may be farther
        assert ground.contacts(position[best])[0].min(axis=1) == pytest.approx(nearest, abs=1e-12)
        front = nearest > 0.0
        found = ground.signed_distance(position[best])
        assert found[front] == pytest.approx(nearest[front], abs=1e-12)


@pytest.mark.parametrize('name', [n for n, ground in GROUNDS.items() if ground.kind == PLANES])
def test_planes_to_the_last_bit(name):
    """n·c − d − r and world x laid into the plane, in the order in which they are written here."""
    ground = GROUNDS[name]
    for probe, q, _ in cases(name):
        position, frame, gap, feature = probe.detect(q)
        pose = probe.pose(q)
        for i in range(probe.slots):
            c, f = i // ground.features, int(feature[i])
            nx, ny, nz, d = ground.data[4 * f : 4 * f + 4]
            along_x = 1.0 - nx * nx, -nx * ny, -nx * nz
            along_y = -ny * nx, 1.0 - ny * ny, -ny * nz
            ax, ay, az = along_x if abs(nx) < 0.9 else along_y
            length = np.sqrt(ax * ax + ay * ay + az * az)
            ax, ay, az = ax / length, ay / length, az / length
            P, (x, y, z), r = pose[probe.joint[c]], probe.offset[c], probe.radius[c]
            cx, cy, cz = (P[k] * x + P[3 + k] * y + P[6 + k] * z + P[9 + k] for k in range(3))
            assert gap[i] == nx * cx + ny * cy + nz * cz - d - r
            assert position[i].tolist() == [cx - r * nx, cy - r * ny, cz - r * nz]
            t2 = [ny * az - nz * ay, nz * ax - nx * az, nx * ay - ny * ax]
            assert frame[i].tolist() == [[ax, ay, az], t2, [nx, ny, nz]]


@pytest.mark.parametrize('halfway', [False, True])
@pytest.mark.parametrize('name', GROUNDS)
def test_rows_give_the_velocity_of_the_material_point(name, halfway):
    for probe, q, v in cases(name, 3):
        position, frame, gap, _ = probe.detect(q)
        u = probe.velocity(q, v, halfway).reshape(-1, 3)
        pin.forwardKinematics(probe.model, probe.data, q, v)
        points = position - (0.5 * gap[:, None] * frame[:, 2] if halfway else 0.0)
        for i, j in enumerate(probe.carrier.tolist()):
            here = probe.data.oMi[j].act(probe.data.v[j])
            expected = frame[i] @ (here.linear + np.cross(here.angular, points[i]))
            assert u[i] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize('name', GROUNDS)
def test_normal_velocity_and_drift_are_rate_and_acceleration_of_the_gap(name):
    for probe, q, v in cases(name):
        zero, one = np.zeros(1), np.ones(1)

        def gap(t, probe=probe, q=q, v=v):
            return probe.detect(pin.integrate(probe.model, q, t * v))[2]

        def rate(t, probe=probe, q=q, v=v):
            return probe.velocity(pin.integrate(probe.model, q, t * v), v)[2::3]

        def difference_of_gap(t, gap=gap, one=one):
            return difference(gap, t, one, 5e-3)

        assert np.abs(rate(0.0) - difference(gap, zero, one, 5e-3)).max() < 1e-8
        acceleration = probe.drift(q, v)[2::3]
        assert np.abs(acceleration - difference(rate, zero, one, 5e-3)).max() < 1e-7
        second = difference(difference_of_gap, zero, one, 5e-3)
        assert np.abs(acceleration - second).max() < 1e-7


@pytest.mark.parametrize('name', GROUNDS)
def test_drift_is_the_rate_of_the_contact_velocity(name):
    for probe, q, v in cases(name):

        def velocity(t, probe=probe, q=q, v=v):
            return probe.velocity(pin.integrate(probe.model, q, t * v), v)

        expected = difference(velocity, np.zeros(1), np.ones(1), 5e-3)
        assert np.abs(probe.drift(q, v) - expected).max() < 1e-7


def test_the_wall_of_a_bowl_bends_towards_a_ball_that_goes_straight_on():
    """φ̈ = −v²/(R − r) at the bottom."""
    ground = GROUNDS['bowl']
    probe = Probe(ground, np.random.default_rng(6))
    probe.joint, probe.slots, probe.offset = np.array([1]), 1, np.zeros((1, 3))
    probe.radius = np.array([0.1])
    q, v = pin.neutral(probe.model), np.zeros(probe.model.nv)
    q[:3] = ground.data[:3] - [0.0, 0.0, ground.radius - 0.1]
    v[0] = 0.7
    expected = [0.0, 0.0, -(0.7**2) / (ground.radius - 0.1)]
    assert probe.drift(q, v) == pytest.approx(expected, abs=1e-12)
