"""Damaged robot descriptions: numbers, attributes, structure, bytes, size.

What `load_robot` accepts has to stand or fall in finite numbers for a few steps.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
from fuzz_values import shown
from fuzz_workers import Unlawful

from contact_sim import Simulator, load_robot
from contact_sim.errors import NonFiniteState

LINK = (
    '<link name="{name}"><inertial><origin xyz="0 0 -0.1" rpy="0 0 0"/><mass value="1.5"/>'
    '<inertia ixx="0.02" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.02"/></inertial>'
    '<collision><origin xyz="0.01 0 0.02"/><geometry>{shape}</geometry></collision></link>'
)
JOINT = (
    '<joint name="to_{child}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
    '<origin xyz="0 0 -0.2" rpy="0 0 0.1"/><axis xyz="0 1 0"/>'
    '<limit lower="-1" upper="2" effort="30" velocity="20"/>'
    '<dynamics damping="0.3" friction="0.4"/>{more}</joint>'
)
SHAPES = (
    '<sphere radius="0.03"/>', '<box size="0.1 0.1 0.1"/>',
    '<cylinder radius="0.03" length="0.1"/>', '<capsule radius="0.03" length="0.1"/>',
)  # fmt: skip
KINDS = ('revolute', 'continuous', 'prismatic', 'fixed')
WORDS = (
    'nan', 'inf', '-inf', '0', '-0', '-1', '1e-310', '1e-12', '1e6', '1e80', '1e308', '1e400', '',
    ' ', '1_0', '0x10', '1,5', '1.5 ', '\t2', '2\n', '1 2', '1 2 3 4', '0 0 0', 'true', 'abc', '٣',
    '1e', '--1', '+1', '1d3', '∞', '0 0 1e-9', '1e-200 0 0', '3.14159', '1e200 0 0', 'nan 0 0',
)  # fmt: skip
NAMES = ('', ' ', 'world', 'universe', 'root_joint', 'base', 'l1', 'a/b', 'x' * 3000, 'ä', '$(x)',
         '${1/0}', '..', 'a b', '"', '__proto__')  # fmt: skip
TAGS = (
    'mimic', 'safety_controller', 'transmission', 'gazebo', 'inertial', 'origin', 'limit', 'axis',
    'collision', 'joint', 'link', 'robot', 'mesh', 'calibration', 'dynamics',
)  # fmt: skip
HEADS = (
    '<?xml version="1.0" encoding="utf-16"?>', '<?xml version="1.0" encoding="klingon"?>',
    '<!DOCTYPE robot [<!ENTITY m "1.0">]>', '<!DOCTYPE robot SYSTEM "file:///etc/passwd">',
    '<!DOCTYPE r [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>',
    '<!-- -- -->', '<?php ?>', '\ufeff', '\0', '   \n',
)  # fmt: skip


def small_robot(chance: random.Random) -> str:
    """Return a sound description of a few links."""
    links = [LINK.format(name='l0', shape=chance.choice(SHAPES))]
    joints = []
    for k in range(1, chance.randrange(2, 6)):
        links.append(LINK.format(name=f'l{k}', shape=chance.choice(SHAPES)))
        more = f'<mimic joint="to_l{k - 1}" multiplier="1"/>' if k > 1 and k % 3 == 0 else ''
        joints.append(
            JOINT.format(
                parent=f'l{chance.randrange(k)}', child=f'l{k}', kind=chance.choice(KINDS),
                more=more,
            )
        )  # fmt: skip
    return f'<robot name="small">{"".join(links)}{"".join(joints)}</robot>'


def elements(root: ElementTree.Element) -> list[tuple[ElementTree.Element, ElementTree.Element]]:
    """Return (parent, child) of every element but the root."""
    return [(parent, child) for parent in root.iter() for child in parent]


def change_value(root: ElementTree.Element, chance: random.Random) -> None:
    """Give an attribute another value."""
    _, child = chance.choice(elements(root))
    if not child.attrib:
        return
    name = chance.choice(sorted(child.attrib))
    if name in ('name', 'link', 'joint', 'type'):
        child.set(name, chance.choice((*NAMES, *KINDS, 'floating', 'planar', 'spherical', 'l2')))
    elif chance.random() < 0.5:
        child.set(name, chance.choice(WORDS))
    else:
        numbers = child.get(name, '').split() or ['0']
        numbers[chance.randrange(len(numbers))] = chance.choice(WORDS)
        child.set(name, ' '.join(numbers))


def drop(root: ElementTree.Element, chance: random.Random) -> None:
    """Leave an element or an attribute out."""
    parent, child = chance.choice(elements(root))
    if child.attrib and chance.random() < 0.5:
        del child.attrib[chance.choice(sorted(child.attrib))]
    else:
        parent.remove(child)


def double(root: ElementTree.Element, chance: random.Random) -> None:
    """Write an element twice."""
    parent, child = chance.choice(elements(root))
    parent.append(child)


def move(root: ElementTree.Element, chance: random.Random) -> None:
    """Put an element somewhere else."""
    parent, child = chance.choice(elements(root))
    target = chance.choice([found for found in root.iter() if found not in child.iter()])
    parent.remove(child)
    target.insert(0, child)


def rename(root: ElementTree.Element, chance: random.Random) -> None:
    """Give an element another tag, or the robot one more element."""
    _, child = chance.choice(elements(root))
    if chance.random() < 0.5:
        child.tag = chance.choice(TAGS)
    else:
        child.append(ElementTree.Element(chance.choice(TAGS), {'name': chance.choice(NAMES)}))


CHANGES = (change_value, change_value, change_value, drop, double, move, rename)


def spoil_text(text: str, chance: random.Random) -> str:
    """Return a text that is cut, mixed up or begins with something odd."""
    place = chance.randrange(1, len(text))
    ways: tuple[Callable[[], str], ...] = (
        lambda: text[:place],
        lambda: text[:place] + text[place + chance.randrange(1, 40) :],
        lambda: text[:place] + chance.choice('<>&"\'\0/=é\x07') + text[place:],
        lambda: chance.choice(HEADS) + text,
        lambda: text + text,
        lambda: text.replace('"', "'", 1),
        lambda: re.sub(r'\d', lambda _: str(chance.randrange(10)), text),
        lambda: text[:place] + text[place : place + 200] * chance.choice((2, 50)) + text[place:],
        lambda: text.replace('value="1.5"', f'value="{chance.choice(WORDS)}"'),
        lambda: text.replace('robot', chance.choice(('xacro:robot', 'sdf', 'Robot', 'mujoco'))),
    )
    return chance.choice(ways)()


def tree(links: int, kind: str, wide: bool) -> str:
    """Return a robot of many links, in a chain or all on the first."""
    parts = [LINK.format(name=f'l{k}', shape=SHAPES[0]) for k in range(links)]
    parts += [
        JOINT.format(parent='l0' if wide else f'l{k - 1}', child=f'l{k}', kind=kind, more='')
        for k in range(1, links)
    ]
    return f'<robot name="tree">{"".join(parts)}</robot>'


def deep(levels: int) -> str:
    """Return elements in elements in elements, ..."""
    return f'<robot name="deep"><link name="a">{"<a>" * levels}{"</a>" * levels}</link></robot>'


class Urdfs:
    """Inputs of the kind `urdfs`."""

    def __init__(self, folder: Path) -> None:
        self.said: str | Callable[[], str] = ''
        self.folder = folder
        self.quadruped = load_robot('quadruped').description

    def text(self, chance: random.Random) -> str:
        """Return a damaged description."""
        if chance.random() < 0.003:
            big = partial(tree, chance.choice((405, 1001, 5000)), chance.choice(KINDS))
            return chance.choice((big(True), big(False), deep(100_000)))
        text = self.quadruped if chance.random() < 0.1 else small_robot(chance)
        if chance.random() < 0.25:
            return spoil_text(text, chance)
        root = ElementTree.fromstring(text)
        for _ in range(chance.choice((1, 1, 1, 2, 5))):
            if elements(root):
                chance.choice(CHANGES)(root, chance)
        text = ElementTree.tostring(root, encoding='unicode')
        return spoil_text(text, chance) if chance.random() < 0.05 else text

    def run(self, chance: random.Random) -> None:
        """Load one description, as text, as a file, or as a file in some encoding."""
        text = self.text(chance)
        self.said = partial(shown, text, 1500)
        floating = chance.random() < 0.8
        if chance.random() < 0.2:
            path = self.folder / chance.choice(('a.urdf', 'b.xml', 'c.xacro', 'd'))
            encoding = chance.choice(('utf-8', 'utf-8', 'latin-1', 'utf-16', 'utf-8-sig'))
            path.write_bytes(text.encode(encoding, errors='surrogatepass' if encoding[-1] != '1'
                                         else 'replace'))  # fmt: skip
            robot = load_robot(path, floating)
        else:
            robot = load_robot(text, floating)
        try:
            sim = Simulator(robot)
            for _ in range(3):
                report = sim.step(np.zeros(robot.n_joints))
        except NonFiniteState:
            return  # said in our words
        if not (np.isfinite(sim.q).all() and np.isfinite(sim.v).all()):
            raise Unlawful('a robot whose state is not finite')
        if not np.isfinite(report.contacts.force).all():
            raise Unlawful('a robot whose contact forces are not finite')
