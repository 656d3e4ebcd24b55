"""Robots with legs as URDF text: four on points, two on soles."""

from __future__ import annotations


def body(name, mass, size, centre=(0.0, 0.0, 0.0), collision=''):
    x, y, z = (mass / 12.0 * (sum(s * s for s in size) - size[k] ** 2) for k in range(3))
    return (
        f'<link name="{name}"><inertial><origin xyz="{_words(centre)}"/><mass value="{mass}"/>'
        f'<inertia ixx="{x}" iyy="{y}" izz="{z}" ixy="0" ixz="0" iyz="0"/></inertial>'
        f'{collision}</link>'
    )


def hinge(name, parent, child, axis, place, limits=(-2.5, 2.5), kind='revolute', more=''):
    limit = f'<limit lower="{limits[0]}" upper="{limits[1]}" effort="200" velocity="30"/>'
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{_words(place[:3])}" rpy="{_words(place[3:] or (0, 0, 0))}"/>'
        f'<axis xyz="{_words(axis)}"/>{limit if kind == "revolute" else ""}{more}</joint>'
    )


def ball(radius, centre=(0.0, 0.0, 0.0)):
    return (
        f'<collision><origin xyz="{_words(centre)}"/><geometry><sphere radius="{radius}"/>'
        '</geometry></collision>'
    )


def quadruped(knee=(-2.6, -0.1), head=0.0, bent=0.0, mimic=False):
    """Twelve joints, straight legs in neutral unless `bent` [rad]; a head mass before it [kg]."""
    parts = [body('trunk', 10.0, (0.5, 0.3, 0.1))]
    if head:
        parts.append(body('head', head, (0.1, 0.1, 0.1)))
        parts.append(hinge('neck', 'trunk', 'head', (1, 0, 0), (0.35, 0, 0.1), kind='fixed'))
    for leg, x, y in (('fl', 1, 1), ('fr', 1, -1), ('hl', -1, 1), ('hr', -1, -1)):
        follows = '<mimic joint="knee_fl"/>' if mimic and leg == 'fr' else ''
        limits = knee if not bent else (knee[0] + 2.0 * bent, knee[1] + 2.0 * bent)
        parts += [
            body(f'shoulder_{leg}', 0.5, (0.05, 0.05, 0.05)),
            body(f'thigh_{leg}', 1.0, (0.03, 0.03, 0.2), (0, 0, -0.1)),
            body(f'calf_{leg}', 0.3, (0.02, 0.02, 0.2), (0, 0, -0.1)),
            body(f'foot_{leg}', 0.05, (0.02, 0.02, 0.02), collision=ball(0.02)),
            hinge(f'roll_{leg}', 'trunk', f'shoulder_{leg}', (1, 0, 0), (0.2 * x, 0.1 * y, 0)),
            hinge(
                f'hip_{leg}', f'shoulder_{leg}', f'thigh_{leg}', (0, 1, 0),
                (0, 0.05 * y, 0, 0, bent, 0),
            ),
            hinge(
                f'knee_{leg}', f'thigh_{leg}', f'calf_{leg}', (0, 1, 0),
                (0, 0, -0.2, 0, -2.0 * bent, 0), limits, more=follows,
            ),
            hinge(f'end_{leg}', f'calf_{leg}', f'foot_{leg}', (1, 0, 0), (0, 0, -0.2),
                  kind='fixed'),
        ]  # fmt: skip
    return f'<robot name="four_legs">{"".join(parts)}</robot>'


def biped(load=0.0, spheres=False):
    """Twelve joints, straight legs in neutral, soles of 16 cm; a load held before it [kg]."""
    parts = [body('trunk', 20.0, (0.2, 0.3, 0.5), (0, 0, 0.3))]
    if load:
        parts.append(body('load', load, (0.1, 0.1, 0.1)))
        parts.append(hinge('arms', 'trunk', 'load', (1, 0, 0), (0.3, 0, 0.3), kind='fixed'))
    box = (
        '<collision><origin xyz="0.03 0 -0.06"/><geometry><box size="0.16 0.08 0.02"/>'
        '</geometry></collision>'
    )
    balls = ''.join(ball(0.005, (x, y, -0.065)) for x in (-0.05, 0.11) for y in (-0.03, 0.03))
    for leg, y in (('l', 1), ('r', -1)):
        parts += [
            body(f'yaw_{leg}', 0.5, (0.05, 0.05, 0.05)),
            body(f'roll_{leg}', 0.5, (0.05, 0.05, 0.05)),
            body(f'thigh_{leg}', 3.0, (0.08, 0.08, 0.35), (0, 0, -0.175)),
            body(f'shank_{leg}', 2.0, (0.06, 0.06, 0.35), (0, 0, -0.175)),
            body(f'cross_{leg}', 0.2, (0.05, 0.05, 0.05)),
            body(f'sole_{leg}', 0.8, (0.16, 0.08, 0.02), (0.03, 0, -0.06),
                 balls if spheres else box),
            hinge(f'hip_yaw_{leg}', 'trunk', f'yaw_{leg}', (0, 0, 1), (0, 0.1 * y, 0)),
            hinge(f'hip_roll_{leg}', f'yaw_{leg}', f'roll_{leg}', (1, 0, 0), (0, 0, 0)),
            hinge(f'hip_{leg}', f'roll_{leg}', f'thigh_{leg}', (0, 1, 0), (0, 0, 0)),
            hinge(f'knee_{leg}', f'thigh_{leg}', f'shank_{leg}', (0, 1, 0), (0, 0, -0.35),
                  (-0.05, 2.5)),
            hinge(f'ankle_{leg}', f'shank_{leg}', f'cross_{leg}', (0, 1, 0), (0, 0, -0.35),
                  (-1.2, 1.0)),
            hinge(f'tilt_{leg}', f'cross_{leg}', f'sole_{leg}', (1, 0, 0), (0, 0, 0),
                  (-0.4, 0.4)),
        ]  # fmt: skip
    return f'<robot name="two_legs">{"".join(parts)}</robot>'


def _words(values):
    return ' '.join(f'{value:g}' for value in values)
