"""Rocking box.

It stands on an edge, falls back, and loses energy when it lands on its base.

Width w, height a, mass m. From the edge to the middle it is R = ½ √(w² + a²), at an angle α to the
side, tan α = w/a. The inertia about the edge is ⁴⁄₃ m R². With φ the angle of R from the vertical

    φ̈ = p² sin φ,   p² = ¾ g/R,   φ̇² = 2 p² (cos φ_0 − cos φ)
    p t = K(k) − F(ψ, k),   k = cos ½ φ_0,   sin ψ = cos ½ φ/k

is the time from rest at φ_0 to φ, that of a pendulum that falls from the top; K and F are elliptic
integrals of the first kind. The box leans by α − φ: φ = α on its base, α − π/2 on its side.

When the base meets the floor and nothing bounces, the angular momentum about the new edge stays:

    ω⁺ = (1 − ³⁄₂ sin² α) ω⁻        then up to  cos φ_1 = cos α + (ω⁺/ω⁻)² (cos φ_0 − cos α)

Friction must bear the impulse, μ ≥ (a/w) (1 − ω⁺/ω⁻)/(1 + ω⁺/ω⁻).

Observe: here each landing takes half of the energy, so the box is soon at rest. A wide box loses
more; one that is 1.41 times as wide as high, sin² α = ⅔, does not rock at all.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.special import ellipk, ellipkinc

from contact_sim import Simulator, load_robot
from textbook.planar import place, run, velocity
from textbook.quantity import Quantity

SOURCE = 'Housner 1963: inverted pendulum structures'
ROBOT = 'tipping_box'
WIDTH, HEIGHT, GRAVITY = 0.2, 0.4, 9.81
REACH, ALPHA = 0.5 * np.hypot(WIDTH, HEIGHT), np.arctan(WIDTH / HEIGHT)
"""R [m] and α [rad]."""
RATE = np.sqrt(0.75 * GRAVITY / REACH)
"""p [1/s]."""
RATIO = 1.0 - 1.5 * np.sin(ALPHA) ** 2
"""ω⁺/ω⁻ [-]."""
LEAN = 0.3
"""How far the box leans at first [rad]."""
BEYOND = 0.5
"""How far it leans at first to fall onto its side [rad]; α is 0.464."""

Array = NDArray[np.float64]


def fall_time(start: float, end: float) -> float:
    """Return the time [s] from rest at the angle `start` of R from the vertical to `end`."""
    k = np.cos(0.5 * start)
    psi = np.arcsin(min(np.cos(0.5 * end) / k, 1.0))
    return float((ellipk(k**2) - ellipkinc(psi, k**2)) / RATE)


def leaning(model: str, lean: float, time_step: float = 1e-3) -> Simulator:
    """Return the box at rest on its front edge, leaning by `lean` [rad]; it does not slip."""
    sim = Simulator(load_robot(ROBOT), model, friction=1e3, time_step=time_step)
    phi = ALPHA - lean
    place(sim, (-REACH * np.sin(phi), REACH * np.cos(phi)), -lean)
    return sim


def landing(model: str, friction: float) -> tuple[float, float, float]:
    """Return ω⁺/ω⁻ of the landing, the slip of the new edge [m/s] and the rise of the old one."""
    sim = Simulator(load_robot(ROBOT), model, friction=friction, gravity=0.0, time_step=1e-9)
    place(sim, (0.0, 0.5 * HEIGHT), 0.0, (-0.5 * HEIGHT, -0.5 * WIDTH, 1.0))
    sim.step([])
    x, z, turn = velocity(sim)
    return float(turn), float(x + 0.5 * HEIGHT * turn), float(z + 0.5 * WIDTH * turn)


def meets(row: Array, end: float) -> float:
    """Return when the box of a row of `planar.run` leans by `end` [rad], from less than a step."""
    time, lean, rate = row[0], -row[3], -row[6]
    bend = -(RATE**2) * np.sin(ALPHA - lean)
    left, reach = end - lean, 0.0
    for _ in range(5):  # lean + rate t + ½ bend t² = end
        reach = (left - 0.5 * bend * reach**2) / rate
    return float(time + reach)


def lands(model: str, time_step: float) -> tuple[float, float]:
    """Return when it stands on its base [s], and how far it leans the other way then [rad]."""
    sim = leaning(model, LEAN, time_step)
    rows = run(sim, 1.0)
    before = int(np.argmax(-rows[:, 3] <= 0.0)) - 1
    after = rows[before + 1 :]
    top = after[int(np.argmax(after[:, 6] < 0.0))]  # less than a step after it
    bend = RATE**2 * np.sin(ALPHA - top[3])
    return meets(rows[before - 1], 0.0), float(top[3] + 0.5 * top[6] ** 2 / bend)


def falls_over(model: str, time_step: float) -> float:
    """Return when it lies on its side [s]."""
    rows = run(leaning(model, BEYOND, time_step), 1.2)
    last = int(np.argmax(-rows[:, 3] >= 0.5 * np.pi - 0.02))
    return meets(rows[last], 0.5 * np.pi)


def quantities() -> list[Quantity]:
    """Return the landing, how long the box falls to either side, and how far it rocks."""
    needed = HEIGHT / WIDTH * (1.0 - RATIO) / (1.0 + RATIO)
    table = []
    for model in ('ncp', 'lcp', 'hybrid'):
        turn, slip, rise = landing(model, needed + 1e-6)
        table.append(
            Quantity('X32', f'omega+/omega-, slip and rise of the edges, {model} [rad/s, m/s]',
                     [RATIO, 0.0, RATIO * WIDTH], [turn, slip, rise], 1e-6)
        )  # fmt: skip
    table.append(
        Quantity('X32', 'slip with 0.001 less friction, ncp: it slips [-]', 1.0,
                 float(abs(landing('ncp', needed - 1e-3)[1]) > 1e-5), 0.0)
    )  # fmt: skip
    back, over = fall_time(ALPHA - LEAN, ALPHA), fall_time(BEYOND - ALPHA, 0.5 * np.pi - ALPHA)
    cosine = np.cos(ALPHA) + RATIO**2 * (np.cos(ALPHA - LEAN) - np.cos(ALPHA))
    for model, step, tolerance in (('hybrid', 1e-3, 1e-6), ('ncp', 1e-4, 1e-3)):
        time, most = lands(model, step)
        table += [
            Quantity('X32', f'falls back from 0.3 rad in, {model} [s]', back, time, tolerance),
            Quantity('X32', f'leans the other way by, {model} [rad]', ALPHA - np.arccos(cosine),
                     most, 10 * tolerance),
            Quantity('X32', f'falls over from 0.5 rad in, {model} [s]', over,
                     falls_over(model, step), tolerance),
        ]  # fmt: skip
    return table


def figure(figure: Figure) -> None:
    """Draw the angle of boxes that rock until they are at rest, and of one that falls over."""
    axes = figure.subplots()
    for model in ('hybrid', 'ncp'):
        rows = run(leaning(model, LEAN), 1.5)
        axes.plot(rows[:, 0], -rows[:, 3], label=f'{model}, from {LEAN:g} rad')
    rows = run(leaning('hybrid', BEYOND), 0.7)
    axes.plot(rows[:, 0], -rows[:, 3], label=f'hybrid, from {BEYOND:g} rad')
    axes.axhline(ALPHA, color='k', ls='--', lw=1, label='balance')
    axes.set(xlabel='time [s]', ylabel='angle [rad]', title='a box on its edge')
    axes.legend()
