"""What each contact model is known to do wrong: measured, drawn, and beside its closed form.

    python benchmarks/artefacts.py        # docs/artefacts/<model>.png, and the numbers

docs/contact_models.md quotes the numbers; test/project/test_artefacts.py compares all three.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pinocchio as pin

from contact_sim import (
    Anitescu,
    Compliant,
    ContactPoint,
    Hybrid,
    InclinedPlane,
    Lcp,
    Ncp,
    NullSpace,
    RobotModel,
    Sap,
    Simulator,
    Todorov,
)

PICTURES = Path(__file__).resolve().parents[1] / 'docs' / 'artefacts'
GRAVITY = 9.81
NO_EFFORT = np.zeros(0)
FLAT = 1e-4
"""Height [mm] below which the picture of bounces ends."""
COLOURS = ('#D55E00', '#0072B2', '#009E73', '#7A4E9E')
"""The artefact first; they differ in brightness, too."""


@dataclass(frozen=True)
class Number:
    """A measured number beside what theory says; `text` is what the documentation quotes."""

    tag: str
    value: float
    expected: float
    tolerance: float
    text: str


@dataclass(frozen=True)
class Curve:
    """A line of a picture."""

    label: str
    x: list[float]
    y: list[float]


@dataclass(frozen=True)
class Artefact:
    """One picture and its numbers."""

    title: str
    x_label: str
    y_label: str
    curves: tuple[Curve, ...]
    numbers: tuple[Number, ...]
    points: bool = False
    """Whether the curves are single points, joined to guide the eye."""
    decades: bool = False
    """Whether the vertical axis is logarithmic."""


def point(mass: float = 1.0) -> RobotModel:
    """Return a point that slides without turning."""
    model, joint = pin.Model(), 0
    for axis in 'XYZ':
        kind = getattr(pin, f'JointModelP{axis}')()
        joint = model.addJoint(joint, kind, pin.SE3.Identity(), f'slide_{axis.lower()}')
    model.appendBodyToJoint(joint, pin.Inertia(mass, np.zeros(3), np.eye(3)), pin.SE3.Identity())
    model.addBodyFrame('body', joint, pin.SE3.Identity(), 0)
    return RobotModel.from_pinocchio(model, ['body'], actuated_joints=(), name='point')


def cube(half: float = 0.1) -> RobotModel:
    """Return a cube of 1 kg on its four lower corners."""
    model = pin.Model()
    joint = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), 'root_joint')
    inertia = pin.Inertia(1.0, np.zeros(3), 4.0 * half**2 / 6.0 * np.eye(3))
    model.appendBodyToJoint(joint, inertia, pin.SE3.Identity())
    model.addBodyFrame('body', joint, pin.SE3.Identity(), 0)
    corners = [
        ContactPoint(f'corner_{k}', 'body', 'root_joint', np.array([x, y, -half]), 0.0)
        for k, (x, y) in enumerate((x, y) for x in (-half, half) for y in (-half, half))
    ]
    return RobotModel.from_pinocchio(model, corners, name='cube')


def standing_cube(model: object, **settings: object) -> Simulator:
    """Return the cube on level ground."""
    sim = Simulator(cube(), model, **settings)  # type: ignore[arg-type]
    sim.reset([0.0, 0.0, 0.1, 0.0, 0.0, 0.0, 1.0])
    return sim


def wrench(x: float, y: float = 0.0, z: float = 0.0) -> dict[str, list[float]]:
    """Return a force on the body [N]."""
    return {'body': [x, y, z, 0.0, 0.0, 0.0]}


def null_space() -> Artefact:
    """Lift a point of 1 kg: held feet are held, whatever it takes."""
    curves, forces = [], {}
    pulls = np.linspace(0.0, 20.0, 41)
    for label, model in (('null_space', NullSpace()), ('ncp', Ncp())):
        sim, normal = Simulator(point(), model), []
        for pull in pulls:
            sim.reset(np.zeros(3))
            sim.step(NO_EFFORT)  # it stands
            normal.append(sim.step(NO_EFFORT, wrench(0.0, 0.0, pull)).contacts.normal_force[0])
        forces[label] = normal
        curves.append(Curve(label, list(pulls), normal))
    found = float(np.interp(15.0, pulls, forces['null_space']))
    return Artefact(
        'A foot of 1 kg is lifted: the ground pulls', 'lifting force [N]', 'normal force [N]',
        tuple(curves), (Number('2.5', found, GRAVITY - 15.0, 1e-9, f'{found:.2f} N'),),
    )  # fmt: skip


def compliant() -> Artefact:
    """Push a point of 1 kg with 2 N of the 4.9 N that friction holds."""
    curves, numbers = [], []
    laws = (('tanh', 4.3291e-4), ('piecewise', 4.0775e-4), ('anchored', 0.0))
    for law, creep in laws:
        model = Compliant(normal_law='kelvin_voigt', friction_law=law, stiffness=1e4)
        sim = Simulator(point(), model, friction=0.5)
        sim.reset([0.0, 0.0, -GRAVITY / 1e4])
        way = []
        for _ in range(2000):
            sim.step(NO_EFFORT, wrench(2.0))
            way.append(1e3 * sim.q[0])
        curves.append(Curve(law, list(1e-3 * np.arange(1, 2001)), way))
        speed = float(sim.v[0])
        text = f'{1e3 * speed:.3f} mm/s' if creep else '0 mm/s'
        numbers.append(Number('T10', speed, creep, 1e-7, text))
        depth = float(-sim.q[2])
    numbers.append(Number('T10', depth, 0.981e-3, 1e-8, f'{1e3 * depth:.3f} mm'))
    return Artefact(
        'A foot pushed with 40 % of its friction: creep', 'time [s]', 'way [mm]',
        tuple(curves), tuple(numbers),
    )  # fmt: skip


def hybrid() -> Artefact:
    """Drop a point from 1 m: infinitely many bounces end at a finite time."""
    sim = Simulator(point(), Hybrid(), restitution=0.8)
    sim.restitution_threshold = 1e-5
    sim.reset([0.0, 0.0, 1.0])
    heights, speeds, events = [], [], []
    while sim.time < 4.2:
        report = sim.step(NO_EFFORT)
        heights.append(max(1e3 * sim.q[2], FLAT))
        speeds.append(abs(sim.v[2]))
        events.append(report.solver.iterations)
    time = 1e-3 * np.arange(1, len(heights) + 1)
    rest = float(time[np.flatnonzero(np.array(speeds) > 1e-9)[-1]]) + 1e-3
    # impacts of the last millisecond, faster than the threshold; the modes are asked a few times
    landings = np.sqrt(2.0 / GRAVITY) * (1.0 + 2.0 * np.cumsum(0.8 ** np.arange(1, 59)))
    last, most = int((landings > rest - 1e-3).sum()), max(events)
    return Artefact(
        'A ball with e = 0.8 from 1 m: bounces accumulate', 'time [s]', 'height [mm]',
        (Curve('hybrid', list(time), heights),),
        (
            Number('T15', rest, 4.06371277, 1e-3, f'{rest:.3f} s'),
            Number('T15', most, last, 4.0, f'{most} iterations'),
        ),
        decades=True,
    )  # fmt: skip


def lcp() -> Artefact:
    """Push a point of 0.2 kg at 38.66° from −x: where it goes."""
    cases = (
        ('lcp, 4 sides', Lcp(sides=4), 45.0), ('lcp, 8 sides', Lcp(sides=8), 33.32),
        ('lcp, box', Lcp(friction_law='box'), 27.197), ('ncp', Ncp(), 38.6598),
    )  # fmt: skip
    curves, numbers = [], []
    for label, model, expected in cases:
        sim = Simulator(point(0.2), model, friction=0.3, time_step=0.01)
        sim.reset(np.zeros(3))
        places = [sim.q]
        for _ in range(50):
            sim.step(NO_EFFORT, wrench(-1.0, 0.8))
            places.append(sim.q)
        x, y, _ = np.array(places).T
        angle = float(np.degrees(np.arctan2(y[-1], -x[-1])))
        curves.append(Curve(label, list(-x), list(y)))
        numbers.append(Number('X11', angle, expected, 5e-3, f'{angle:.2f}°'))
    return Artefact(
        'A point pushed at 38.66°: the slip snaps to edges', 'way along the first axis [m]',
        'along the second [m]', tuple(curves), tuple(numbers),
    )  # fmt: skip


def anitescu() -> Artefact:
    """Let a cube slide at 1 m/s: it takes off."""
    curves, hop = [], 0.0
    for label, model in (('anitescu', Anitescu()), ('ncp', Ncp())):
        sim = standing_cube(model, friction=0.4)
        sim.reset(sim.q, [1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
        gaps = [1e3 * sim.step(NO_EFFORT).contacts.gap.max() for _ in range(350)]
        curves.append(Curve(label, list(1e-3 * np.arange(1, 351)), gaps))
        hop = max(hop, *gaps)
    return Artefact(
        'A cube slides at 1 m/s, μ = 0.4: it hops', 'time [s]', 'highest corner [mm]',
        tuple(curves), (Number('X6', 1e-3 * hop, 6.18e-3, 5e-6, f'{hop:.2f} mm'),),
    )  # fmt: skip


def todorov() -> Artefact:
    """Lay a cube on a slope of 10°, μ = 0.8: it creeps."""
    angle, curves, numbers = np.deg2rad(10.0), [], []
    cases: tuple[tuple[str, float, int, float], ...] = (
        ('impratio 1', 1.0, 0, 1.70348e-3), ('impratio 10', 10.0, 0, 1.70348e-4),
        ('with noslip', 1.0, 20, 0.0),
    )  # fmt: skip
    for label, impratio, noslip, creep in cases:
        ground = InclinedPlane(angle)
        model = Todorov(
            impedance_start=0.9, impedance_end=0.9, cone='elliptic', diagonal='exact',
            impratio=impratio, noslip_iterations=noslip,
        )  # fmt: skip
        sim = Simulator(cube(), model, terrain=ground, friction=0.8)
        place = 0.1 * ground.plane[:3]
        sim.reset([*place, 0.0, np.sin(0.5 * angle), 0.0, np.cos(0.5 * angle)])
        way = []
        for _ in range(1500):
            report = sim.step(NO_EFFORT)
            way.append(1e3 * float(np.linalg.norm(sim.q[:3] - place)))
        curves.append(Curve(label, list(1e-3 * np.arange(1, 1501)), way))
        speed = float(report.contacts.slip_speed.max())
        text = f'{1e3 * speed:.2f} mm/s' if creep else '0 mm/s'
        numbers.append(Number('2.4', speed, creep, 1e-8, text))
    return Artefact(
        'A cube on a slope of 10°, μ = 0.8: it creeps', 'time [s]', 'way [mm]', tuple(curves),
        tuple(numbers),
    )  # fmt: skip


def sap() -> Artefact:
    """Drive a point at 1 m/s: the original approximation glides over the ground."""
    curves, numbers, h, tau = [], [], 0.01, 0.05
    cases = (
        ('sap, as published first', {'approximation': 'sap', 'weight': 'delassus'}, 0.0299004),
        ('sap, lagged (default)', {'approximation': 'lagged'}, None),
    )
    for label, choice, expected in cases:
        model = Sap(
            **choice, acts_ahead=True, stiffness=1e5, relaxation_time=tau, beta=0.0,
            sigma=np.sqrt(3.0) * 1e-3,
        )  # fmt: skip
        sim = Simulator(point(), model, friction=0.5, time_step=h)
        sim.reset(np.zeros(3), [1.0, 0.0, 0.0])
        gaps = []
        for _ in range(300):
            pull = 0.5 * GRAVITY + 20.0 * (1.0 - sim.v[0])
            gaps.append(1e3 * sim.step(NO_EFFORT, wrench(pull)).contacts.gap[0])
        curves.append(Curve(label, list(h * np.arange(1, 301)), gaps))
        if expected is not None:
            text = f'{gaps[-1]:.2f} mm'
            numbers.append(Number('2.3', 1e-3 * gaps[-1], expected, 1e-7, text))
    return Artefact(
        'A point driven at 1 m/s, μ = 0.5: it glides', 'time [s]', 'gap [mm]', tuple(curves),
        tuple(numbers),
    )  # fmt: skip


def ncp() -> Artefact:
    """Ask for the forces of a cube at rest: many answers, one wrench."""
    problem = standing_cube(Ncp(), friction=0.4).step(NO_EFFORT).problem
    share = GRAVITY * problem.time_step / 2.0
    diagonal = np.zeros(12)
    diagonal[[2, 11]] = share
    cases = (
        ('ncp, started from two corners', Ncp(), diagonal), ('ncp, started from 0', Ncp(), None),
        ('lcp', Lcp(), None),
    )  # fmt: skip
    curves, numbers = [], []
    for label, model, guess in cases:
        impulse = model.solve(problem, guess).impulse
        normal = impulse[2::3] / problem.time_step
        curves.append(Curve(label, [1.0, 2.0, 3.0, 4.0], list(normal)))
        carried = problem.jacobian.T @ impulse / problem.time_step
        error = float(np.abs(carried - [0.0, 0.0, GRAVITY, 0.0, 0.0, 0.0]).max())
        numbers.append(Number('X7', GRAVITY + error, GRAVITY, 1e-7, '9.81 N'))
    spread = float(np.ptp(curves[0].y))
    numbers.append(Number('2.11', spread, GRAVITY / 2.0, 1e-6, f'{spread:.2f} N'))
    return Artefact(
        'A cube of 9.81 N at rest: who carries it?', 'corner', 'normal force [N]', tuple(curves),
        tuple(numbers), points=True,
    )  # fmt: skip


ARTEFACTS: dict[str, Callable[[], Artefact]] = {
    one.__name__: one for one in (null_space, compliant, hybrid, lcp, anitescu, todorov, sap, ncp)
}
"""Of every contact model, by its name."""


def draw(artefact: Artefact, path: Path) -> None:
    """Write the picture as PNG."""
    import matplotlib

    matplotlib.use('Agg')
    from matplotlib import pyplot as plt

    style = {'font.size': 10, 'axes.spines.top': False, 'axes.spines.right': False}
    with plt.rc_context(style):
        figure, axes = plt.subplots(figsize=(7.2, 2.8), layout='constrained')
        for k, curve in enumerate(artefact.curves):
            marks = {'marker': 'osD^'[k], 'linestyle': ':'} if artefact.points else {}
            axes.plot(curve.x, curve.y, color=COLOURS[k], label=curve.label, lw=1.8, **marks)
        if artefact.points:
            axes.set_xticks(artefact.curves[0].x)
        if artefact.decades:
            axes.set_yscale('log')
        axes.set(title=artefact.title, xlabel=artefact.x_label, ylabel=artefact.y_label)
        axes.grid(color='#dddddd', lw=0.6)
        axes.legend(frameon=False, loc='center left', bbox_to_anchor=(1.0, 0.5))
        numbers = {'Description': '\n'.join(number.text for number in artefact.numbers)}
        figure.savefig(path, dpi=90, metadata=numbers)
        plt.close(figure)


def main() -> None:
    """Draw every picture and print every number."""
    PICTURES.mkdir(exist_ok=True)
    for name, measure in ARTEFACTS.items():
        artefact = measure()
        draw(artefact, PICTURES / f'{name}.png')
        for number in artefact.numbers:
            print(f'{name:12}{number.tag:6}{number.text:18}{number.value:.9g}  theory '
                  f'{number.expected:.9g}')  # fmt: skip


if __name__ == '__main__':
    main()
