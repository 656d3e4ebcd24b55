"""Hostile files of every kind: what reading each of them costs, and what is said about it.

    python test/fuzz/attacks.py [--only NAME] [--limit BYTES] [--patience S]

Each file is read in a child process of its own. The table has the size of the file, the memory
that the process has added at its peak and its processor time [getrusage], and the first words of
the error.
Exit code 1: a file that took more than twice the limit, was not refused in our words, or hung.
"""

from __future__ import annotations

import argparse
import base64
import io
import json
import os
import resource
import signal
import socket
import struct
import sys
import tempfile
import time
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

GUARD = 12 << 30
"""Address space of a child [bytes]: the machine survives what is not refused."""
BLOCK = 1 << 20
Reader = Callable[[Path], object]


@dataclass(frozen=True)
class Attack:
    """A hostile file and who reads it."""

    name: str
    make: Callable[[Path, float], Path]
    """Writes the file into a folder, for a limit [bytes], and returns its path."""
    read: Reader


@dataclass(frozen=True)
class Outcome:
    """What reading a file did."""

    name: str
    size: int
    """Of the file [bytes]."""
    peak: float
    """Memory that the process added at most [bytes]."""
    seconds: float
    """Wall time."""
    cpu: float
    """Time of the processor [s]."""
    said: str
    """Class and text of the error, 'accepted', or how the process ended."""
    ours: bool
    """Whether the answer is an error of contact_sim, or the file was read."""


# --- Bytes: packed zeros, archives, images


def zeros(count: float) -> Iterator[bytes]:
    """Yield `count` zeros in blocks."""
    for _ in range(int(count // BLOCK) + 1):
        yield bytes(BLOCK)


def packed(blocks: Iterator[bytes], window: int = 15) -> tuple[bytes, int, int]:
    """Return blocks packed by zlib, their size and their checksum."""
    step, out, size, crc = zlib.compressobj(9, wbits=window), [], 0, 0
    for block in blocks:
        out.append(step.compress(block))
        size, crc = size + len(block), zlib.crc32(block, crc)
    return b''.join([*out, step.flush()]), size, crc


def npy_head(descr: str, shape: tuple[int, ...]) -> bytes:
    """Return the header of a .npy file."""
    out = io.BytesIO()
    header = {'descr': descr, 'fortran_order': False, 'shape': shape}
    np.lib.format.write_array_header_1_0(out, header)
    return out.getvalue()


def npz(path: Path, members: dict[str, Any], complete: bool = True) -> Path:
    """Write an archive; a member is bytes or an iterator of blocks. Incomplete: no table."""
    with zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED, compresslevel=9) as file:
        for name, content in members.items():
            blocks = iter([content]) if isinstance(content, bytes) else content
            data, size, crc = packed(blocks, -15)
            head = struct.pack(
                '<4s5H3L2H', b'PK\3\4', 20, 0, 8, 0, 0x21, crc, len(data), size, len(name), 0
            )
            entry = zipfile.ZipInfo(name)
            entry.header_offset, entry.CRC = file.fp.tell(), crc
            entry.compress_size, entry.file_size = len(data), size
            entry.compress_type = zipfile.ZIP_DEFLATED
            file.fp.write(head + name.encode() + data)
            file.filelist.append(entry)
            file.NameToInfo[name] = entry
            file.start_dir = file.fp.tell()
            file._didModify = True
        end = file.fp.tell()
    if not complete:
        with path.open('r+b') as cut:
            cut.truncate(end)
    return path


def array(value: Any) -> bytes:
    """Return an array as a .npy file."""
    out = io.BytesIO()
    np.lib.format.write_array(out, np.asarray(value), allow_pickle=False)
    return out.getvalue()


def png(path: Path, width: int, height: int, rows: int) -> Path:
    """Write a grey image of 16 bits, of which `rows` are there."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack('>L', len(data)) + kind + data + struct.pack(
            '>L', zlib.crc32(kind + data))  # fmt: skip

    data, _, _ = packed(bytes(1 + 2 * width) for _ in range(rows))
    head = struct.pack('>LLBBBBB', width, height, 16, 0, 0, 0, 0)
    chunks = chunk(b'IHDR', head), chunk(b'IDAT', data), chunk(b'IEND', b'')
    path.write_bytes(b'\x89PNG\r\n\x1a\n' + b''.join(chunks))
    return path


# --- Recordings


def recorded(folder: Path) -> dict[str, bytes]:
    """Return the members of a sound recording."""
    from contact_sim import Simulator, load_robot
    from contact_sim.replay import Recorder

    sim = Simulator(load_robot('quadruped'))
    with Recorder(sim, folder / 'sound.npz'):
        for _ in range(3):
            sim.step(np.zeros(sim.robot.n_joints))
    with zipfile.ZipFile(folder / 'sound.npz') as file:
        return {name: file.read(name) for name in file.namelist()}


def with_header(folder: Path, change: Callable[[dict[str, Any]], object]) -> dict[str, bytes]:
    """Return the members of a recording whose header was changed."""
    members = recorded(folder)
    header = json.loads(str(np.load(io.BytesIO(members['header.npy']))))
    change(header)
    return members | {'header.npy': array(json.dumps(header))}


def big_member(folder: Path, limit: float, complete: bool = True) -> Path:
    """An array of zeros of twice the limit as efforts."""
    count = int(2 * limit)
    head = npy_head('<f8', (count // 96, 12))

    def blocks() -> Iterator[bytes]:
        yield head
        yield from zeros(count)

    name = next(name for name in recorded(folder) if name.endswith('/effort.npy'))
    return npz(folder / 'big.npz', recorded(folder) | {name: blocks()}, complete)


def declared_member(folder: Path, limit: float) -> Path:
    """An array of which the header declares terabytes."""
    name = 'initial/buffer.npy'
    members = recorded(folder) | {name: npy_head('<f8', (10**12,)) + bytes(8)}
    return npz(folder / 'declared.npz', members)


def many_chunks(folder: Path, limit: float) -> Path:
    """Chunks that are small, and together more than the limit."""
    members: dict[str, Any] = recorded(folder)
    count, steps = 0, int(limit / 16 / 96)
    for name in list(members):
        if name.startswith('steps-'):
            del members[name]
    effort, hashes = array(np.zeros((steps, 12))), array(np.zeros(steps, np.uint64))
    for _ in range(24):
        members[f'steps-{count:010d}/hash.npy'] = hashes
        members[f'steps-{count:010d}/effort.npy'] = effort
        count += steps
    return npz(folder / 'chunks.npz', members)


def packed_ground(folder: Path, limit: float) -> Path:
    """A ground that unpacks to twice the limit, packed twice."""
    relief = base64.b64encode(packed(zeros(2 * limit))[0]).decode()

    def change(header: dict[str, Any]) -> None:
        header['ground'] |= {'kind': 3, 'relief': relief}

    return npz(folder / 'ground.npz', with_header(folder, change))


def many_points(folder: Path, limit: float) -> Path:
    """20 000 contact points."""

    def change(header: dict[str, Any]) -> None:
        point = header['robot']['contact_points'][0]
        header['robot']['contact_points'] = [{**point, 'name': f'p{k}'} for k in range(20_000)]

    return npz(folder / 'points.npz', with_header(folder, change))


def json_header(text: Callable[[float], str], folder: Path, limit: float) -> Path:
    """A header that is no recording."""
    return npz(folder / 'json.npz', recorded(folder) | {'header.npy': array(text(limit))})


def many_members(folder: Path, limit: float) -> Path:
    """A table of contents of many members, two million under the default limit."""
    path, count = folder / 'members.npz', int(limit / 500)
    entry = struct.pack(
        '<4s6H3L5H2L', b'PK\1\2', 20, 20, 0, 0, 0, 0x21, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0
    )
    names = (struct.pack('<L', k) for k in range(count))
    table = b''.join(entry + bytes(b % 26 + 65 for b in name) for name in names)
    size, places = len(table), b'PK\6\6'
    zip64 = struct.pack('<4sQ2H2L4Q', places, 44, 45, 45, 0, 0, count, count, size, 0)
    locator = struct.pack('<4sLQL', b'PK\6\7', 0, size, 1)
    end = struct.pack('<4s4H2LH', b'PK\5\6', 0, 0, 0xFFFF, 0xFFFF, size, 0, 0)
    path.write_bytes(table + zip64 + locator + end)
    return path


def broken_npy(name: str, folder: Path, limit: float) -> Path:
    """An array whose header has a bracket that is never closed, in version 1 of the format."""
    text = b"{'descr': '<f8', 'fortran_order': False, 'shape': (3L, (((((((((((((((\n"
    content = b'\x93NUMPY\x01\x00' + struct.pack('<H', len(text)) + text + bytes(24)
    if name.endswith('.npz'):
        return npz(folder / name, recorded(folder) | {'header.npy': content})
    (folder / name).write_bytes(content)
    return folder / name


# --- Texts

ALIASES = '\n'.join(
    [f'a0: &a0 [{", ".join("x" * 9)}]']
    + [f'a{k + 1}: &a{k + 1} [{", ".join([f"*a{k}"] * 9)}]' for k in range(9)]
)
MERGES = '\n'.join(
    ['a0: &a0 {k: 1}']
    + [f'a{k + 1}: &a{k + 1} {{<<: [{", ".join([f"*a{k}"] * 9)}]}}' for k in range(9)]
)
YAML = {
    'aliases': lambda limit: ALIASES + '\nnum_rows: *a9\n',
    'merges': lambda limit: MERGES,
    'deep': lambda limit: '[' * 100_000,
    'many nodes': lambda limit: '[' + 'a,' * int(limit / 150) + ']',
    'long number': lambda limit: 'a: ' + '1:' * 200_000 + '1',
    'no date': lambda limit: 'a: 2001-99-99',
}
URDF = '<robot name="r"><link name="l"/>{}</robot>'
DOUBLING = (
    '<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro"><link name="l"/>'
    + ''.join(
        f'<xacro:macro name="m{k}"><xacro:m{k + 1}/><xacro:m{k + 1}/></xacro:macro>'
        for k in range(40)
    )
    + '<xacro:macro name="m40"><a/></xacro:macro><xacro:m0/></robot>'
)
XML = {
    'elements.urdf': lambda limit: URDF.format('<a/>' * int(limit / 40)),
    'attributes.urdf': lambda limit: URDF.format('<a b="" c="" d=""/>' * int(limit / 200)),
    'deep.urdf': lambda limit: URDF.format('<a>' * 200_000 + '</a>' * 200_000),
    'long.urdf': lambda limit: URDF.format('<!--' + 'x' * int(1.5 * limit) + '-->'),
    'doubling.xacro': lambda limit: DOUBLING,
    'endless.xacro': lambda limit: DOUBLING.replace('<a/>', '<xacro:m0/>'),
    'looping.xacro': lambda limit: URDF.format('${[k for k in range(10**12)]}').replace(
        'name="r"', 'name="r" xmlns:xacro="http://www.ros.org/wiki/xacro"'
    ),
}


def text_file(name: str, text: Callable[[float], str], folder: Path, limit: float) -> Path:
    """A text."""
    (folder / name).write_text(text(limit), encoding='utf-8')
    return folder / name


# --- Meshes


def lying_stl(folder: Path, limit: float) -> Path:
    """A binary STL that declares four thousand million triangles."""
    (folder / 'a.stl').write_bytes(bytes(80) + struct.pack('<L', 2**32 - 1) + bytes(100))
    return folder / 'a.stl'


def lying_ply(folder: Path, limit: float) -> Path:
    """A PLY that declares a thousand million corners."""
    text = (
        'ply\nformat binary_little_endian 1.0\nelement vertex 1000000000\nproperty float x\n'
        'property float y\nproperty float z\nelement face 1000000000\n'
        'property list uchar int vertex_indices\nend_header\n'
    )
    (folder / 'a.ply').write_bytes(text.encode() + bytes(100))
    return folder / 'a.ply'


def lying_gltf(folder: Path, limit: float) -> Path:
    """A glTF with an accessor of a thousand million corners and no bytes for them."""
    accessor = {'componentType': 5126, 'count': 10**9, 'type': 'VEC3'}
    text = {
        'asset': {'version': '2.0'}, 'scene': 0, 'scenes': [{'nodes': [0]}],
        'nodes': [{'mesh': 0}], 'meshes': [{'primitives': [{'attributes': {'POSITION': 0}}]}],
        'accessors': [accessor],
    }  # fmt: skip
    (folder / 'a.gltf').write_text(json.dumps(text))
    return folder / 'a.gltf'


def folded_dae(folder: Path, limit: float) -> Path:
    """A COLLADA whose nodes refer to each other 2^40 times."""
    nodes = ''.join(
        f'<node id="n{k}">' + f'<instance_node url="#n{k + 1}"/>' * 2 + '</node>'
        for k in range(40)
    )
    (folder / 'a.dae').write_text(
        f'<COLLADA><library_nodes>{nodes}<node id="n40"/></library_nodes><library_visual_scenes>'
        '<visual_scene><node><instance_node url="#n0"/></node></visual_scene>'
        '</library_visual_scenes></COLLADA>'
    )
    return folder / 'a.dae'


def numbers_dae(folder: Path, limit: float) -> Path:
    """A COLLADA of many numbers of one digit."""
    text = '0 ' * int(limit / 20)
    (folder / 'a.dae').write_text(
        '<COLLADA><library_geometries><geometry id="g"><mesh>'
        f'<source id="s"><float_array>{text}</float_array></source>'
        '<vertices id="v"><input semantic="POSITION" source="#s"/></vertices>'
        '<triangles count="1"><input semantic="VERTEX" source="#v" offset="0"/><p>0 1 2</p>'
        '</triangles></mesh></geometry></library_geometries><library_visual_scenes>'
        '<visual_scene><node><instance_geometry url="#g"/></node></visual_scene>'
        '</library_visual_scenes></COLLADA>'
    )
    return folder / 'a.dae'


def waiting_obj(folder: Path, limit: float) -> Path:
    """An OBJ whose material is a FIFO."""
    os.mkfifo(folder / 'a.mtl')
    text = 'mtllib a.mtl\nv 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n'
    (folder / 'a.obj').write_text(text)
    return folder / 'a.obj'


def big_obj(folder: Path, limit: float) -> Path:
    """An OBJ of many triangles."""
    (folder / 'a.obj').write_text('v 0 0 0\nv 1 0 0\nv 0 1 0\n' + 'f 1 2 3\n' * int(limit / 80))
    return folder / 'a.obj'


# --- Bags and tables


def bag(folder: Path, limit: float) -> Path:
    """A bag of one chunk that unpacks to twice the limit."""
    from mcap.writer import CompressionType, Writer

    path = folder / 'a.mcap'
    with path.open('wb') as file:
        writer = Writer(file, chunk_size=1 << 10, compression=CompressionType.ZSTD)
        writer.start(profile='ros2')
        text = 'std_msgs/Header header\n'
        schema = writer.register_schema('nav_msgs/msg/Odometry', 'ros2msg', text.encode())
        channel = writer.register_channel('/odom', 'cdr', schema)
        writer.add_message(channel, 0, bytes(int(min(2 * limit, 2.0**31))), 0)
        writer.finish()
    return path


def table(folder: Path, limit: float) -> Path:
    """A table of a campaign with many equal rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from contact_sim.campaign._table import _schema

    schema, rows = _schema(), 500_000
    fill = {pa.string(): 'x', pa.float64(): 0.0, pa.int64(): 0, pa.bool_(): True}
    part = pa.table([pa.repeat(pa.scalar(fill[f.type], f.type), rows) for f in schema], schema)
    where = folder / 'table'
    where.mkdir()
    with pq.ParquetWriter(where / 'part-000000.parquet', schema, compression='zstd') as writer:
        for _ in range(max(1, int(4 * limit / rows / 8 / len(schema)))):
            writer.write_table(part)
    return where


# --- Places that are no regular files


def special(kind: str, name: str, folder: Path, limit: float) -> Path:
    """A link to an endless device, a FIFO or a socket, called as the reader wants it."""
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    if kind == 'device':
        path.symlink_to('/dev/zero')
    elif kind == 'FIFO':
        os.mkfifo(path)
    else:
        before = os.getcwd()
        os.chdir(path.parent)  # the path of a socket is short
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path.name)
        os.chdir(before)
    return path


def in_xacro(kind: str, folder: Path, limit: float) -> Path:
    """A xacro that includes such a place."""
    special(kind, 'x.xacro', folder, limit)
    (folder / 'outer.xacro').write_text(
        '<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">'
        '<xacro:include filename="x.xacro"/><link name="l"/></robot>'
    )
    return folder / 'outer.xacro'


# --- Readers


def read_recording(path: Path) -> object:
    """Read a recording as a replay does."""
    from contact_sim.errors import InvalidInput
    from contact_sim.replay import Recording

    recording = Recording(path)
    recording.simulator()
    size = recording.effort.size
    if recording.damage:
        raise InvalidInput(recording.damage)
    return size


def read_heights(path: Path) -> object:
    """Read heights."""
    from contact_sim.terrain import HeightField

    return HeightField.from_file(path, 0.1, 0.001)


def read_ground(path: Path) -> object:
    """Read parameters of a terrain."""
    from contact_sim.terrain import TerrainGenerator

    return TerrainGenerator.from_file(path)


def read_scenario(path: Path) -> object:
    """Read a scenario of a campaign."""
    from contact_sim.campaign._scenarios import scenario_of

    return scenario_of(str(path))


def read_policy(path: Path) -> object:
    """Read a policy."""
    from contact_sim import load_robot
    from contact_sim.control import load_policy

    return load_policy(path, load_robot('quadruped'))


def read_robot(path: Path) -> object:
    """Load a robot."""
    from contact_sim import load_robot

    return load_robot(path, feet=(), check_meshes=False)


def read_srdf(path: Path) -> object:
    """Load a robot with an SRDF."""
    from contact_sim import load_robot

    return load_robot('quadruped', srdf=path)


def _with_mesh(path: Path, use: str) -> str:
    return (
        '<robot name="r"><link name="l"><inertial><mass value="1"/><inertia ixx="1" ixy="0" '
        f'ixz="0" iyy="1" iyz="0" izz="1"/></inertial><{use}><geometry><mesh filename="{path}"/>'
        f'</geometry></{use}></link></robot>'
    )


def read_drawn_mesh(path: Path) -> object:
    """Read the visual mesh of a link; a mesh that is refused is a note."""
    from contact_sim import load_robot
    from contact_sim.drawing._body_meshes import link_geometries
    from contact_sim.errors import InvalidInput

    robot = load_robot(_with_mesh(path, 'visual'), feet=(), check_meshes=False)
    _, missing = link_geometries(robot, 'visual')
    if missing:
        raise InvalidInput(missing[0])
    return robot


def read_collision_mesh(path: Path) -> object:
    """Read the collision mesh of a link; a mesh that is refused is a note."""
    from contact_sim import load_robot
    from contact_sim.errors import InvalidInput

    robot = load_robot(_with_mesh(path, 'collision'), feet=(), check_meshes=False)
    if robot.notes:
        raise InvalidInput(robot.notes[0])
    return robot


def read_mesh(path: Path) -> object:
    """Read a mesh as ground."""
    from contact_sim.terrain import TriangleMesh

    return TriangleMesh.from_file(path)


def read_bag(path: Path) -> object:
    """Read a bag."""
    from contact_sim import load_robot
    from contact_sim.judge import from_mcap

    return from_mcap(load_robot('quadruped'), path)


def read_steps(path: Path) -> object:
    """Read steps of any engine."""
    from contact_sim.judge import Steps

    return Steps.load(path)


def read_problem(path: Path) -> object:
    """Read a saved problem."""
    from contact_sim.step import ContactProblem

    return ContactProblem.load(path)


def read_table(path: Path) -> object:
    """Read the table of a campaign; `path` is its folder, or a file in it."""
    from contact_sim.campaign import read_rows

    return read_rows(path if path.is_dir() else path.parent)


def read_controller(path: Path) -> object:
    """Load a controller of a campaign."""
    from contact_sim.campaign._controllers import _file

    return _file(str(path), path)


PLACES: dict[str, Reader] = {
    'run.npz': read_recording, 'steps.npz': read_steps, 'problem.npz': read_problem,
    'heights.npy': read_heights, 'heights.png': read_heights, 'ground.yaml': read_ground,
    'scenario.yaml': read_scenario, 'policy.yaml': read_policy, 'robot.urdf': read_robot,
    'robot.xacro': read_robot, 'robot.srdf': read_srdf, 'ground.stl': read_mesh,
    'drawn.stl': read_drawn_mesh, 'solid.stl': read_collision_mesh, 'bag.mcap': read_bag,
    'table/part-000000.parquet': read_table, 'controller.py': read_controller,
}  # fmt: skip
"""Readers by the name of the file that they want."""


def attacks() -> list[Attack]:
    """Return all attacks."""
    found = [
        Attack('recording: array of twice the limit', big_member, read_recording),
        Attack('recording: the same, killed', partial(big_member, complete=False), read_recording),
        Attack('recording: array declared 8 TB', declared_member, read_recording),
        Attack('recording: chunks, together beyond', many_chunks, read_recording),
        Attack('recording: ground packed twice', packed_ground, read_recording),
        Attack('recording: 20 000 contact points', many_points, read_recording),
        Attack('recording: header nested deeply', partial(json_header, lambda m: '[' * 10**5),
               read_recording),
        Attack('recording: header of many lists',
               partial(json_header, lambda m: '[' + '[],' * int(m / 60) + '[]]'), read_recording),
        Attack('recording: many members', many_members, read_recording),
        Attack('recording: damaged array', partial(broken_npy, 'a.npz'), read_recording),
        Attack('steps: many members', many_members, read_steps),
        Attack('steps: array of twice the limit', big_member, read_steps),
        Attack('problem: array of twice the limit', big_member, read_problem),
        Attack('heights: damaged array', partial(broken_npy, 'a.npy'), read_heights),
        Attack('heights: array declared 8 TB', _declared_npy, read_heights),
        Attack('heights: PNG of 12 000 x 12 000', lambda folder, m: png(folder / 'a.png', 12_000,
               12_000, 12_000), read_heights),
        Attack('heights: PNG declared 2^31 pixels', lambda folder, m: png(folder / 'a.png', 46_341,
               46_341, 1), read_heights),
        *(Attack(f'{who}: YAML, {what}', partial(text_file, 'a.yaml', text), read)
          for what, text in YAML.items()
          for who, read in (('ground', read_ground), ('scenario', read_scenario),
                            ('policy', read_policy))),
        *(Attack(f'robot: {name}', partial(text_file, name, text), read_robot)
          for name, text in XML.items()),
        Attack('robot: SRDF nested deeply', partial(text_file, 'a.srdf', XML['deep.urdf']),
               read_srdf),
        *(Attack(f'{who}: {what}', make, read)
          for what, make in (('STL declares 2^32', lying_stl), ('PLY declares 10^9', lying_ply),
                             ('glTF declares 10^9', lying_gltf), ('OBJ with a FIFO', waiting_obj),
                             ('OBJ of many triangles', big_obj))
          for who, read in (('ground', read_mesh), ('drawn', read_drawn_mesh),
                            ('solid', read_collision_mesh))),
        *(Attack(f'{who}: {what}', make, read)
          for what, make in (('DAE folded 2^40 times', folded_dae),
                             ('DAE of many numbers', numbers_dae))
          for who, read in (('drawn', read_drawn_mesh), ('solid', read_collision_mesh))),
        Attack('bag: chunk of twice the limit', bag, read_bag),
        Attack('table: many equal rows', table, read_table),
        *(Attack(f'{kind}: {name}', partial(special, kind, name), read)
          for name, read in PLACES.items() for kind in ('device', 'FIFO', 'socket')),
        *(Attack(f'{kind}: included by a xacro', partial(in_xacro, kind), read_robot)
          for kind in ('device', 'FIFO')),
    ]  # fmt: skip
    return found


def _declared_npy(folder: Path, limit: float) -> Path:
    (folder / 'a.npy').write_bytes(npy_head('<f8', (10**6, 10**6)) + bytes(80))
    return folder / 'a.npy'


# --- Measuring


def measure(attack: Attack, limit: float, patience: float) -> Outcome:
    """Read a file in a child process and return what that cost."""
    with tempfile.TemporaryDirectory(prefix='contact_sim_attack_') as folder:
        maker = os.fork()  # what making it takes is not this process's
        if maker == 0:
            try:
                warnings.simplefilter('ignore')
                path = attack.make(Path(folder), limit)
                Path(folder, 'path').write_text(str(path))
            except BaseException as error:
                print(f'{attack.name}: {error!r}', file=sys.stderr)
                os._exit(1)
            os._exit(0)
        if os.waitpid(maker, 0)[1] != 0:
            return Outcome(attack.name, 0, 0.0, 0.0, 0.0, 'the file could not be made', False)
        path = Path(Path(folder, 'path').read_text())
        files = [path] if not path.is_dir() else list(path.iterdir())
        size = sum(file.lstat().st_size for file in files)
        answer, says = os.pipe()
        start = time.perf_counter()
        child = os.fork()
        if child == 0:
            _read_in_child(attack, path, says, limit, 0.6 * patience)
        os.close(says)
        ended, usage = 0, None
        while not ended and time.perf_counter() < start + patience:
            ended, status, usage = os.wait4(child, os.WNOHANG)
            time.sleep(0.005)
        if not ended:
            os.kill(child, signal.SIGKILL)
            _, status, usage = os.wait4(child, 0)
        seconds = time.perf_counter() - start
        with os.fdopen(answer, 'rb') as pipe:
            told = pipe.read()
        before, _, said = told.decode(errors='replace').partition('\n')
        peak = 1024.0 * usage.ru_maxrss - float(before or 0.0)
        if not ended:
            said = f'hangs: no answer in {patience:g} s'
        elif not said:
            logs = [p.read_text(errors='replace') for p in Path(folder).rglob('.stderr')]
            said = f'the process ended with status {status}: {"".join(logs)[-2000:]}'
        ours = said.startswith(('ours', 'accepted'))
        cpu = usage.ru_utime + usage.ru_stime
        return Outcome(attack.name, size, peak, seconds, cpu, said, ours)


def _read_in_child(attack: Attack, path: Path, says: int, limit: float, seconds: float) -> None:
    """Read the file; tell memory at the start, and how it went."""
    said = ''
    try:
        from contact_sim.errors import ContactSimError

        with path.parent.joinpath('.stderr').open('wb') as log:
            os.dup2(log.fileno(), 2)
        warnings.simplefilter('ignore')
        os.environ['CONTACT_SIM_READING'] = f'bytes={limit:.0f},seconds={seconds:g}'
        os.chdir(path.parent)
        page = os.sysconf('SC_PAGE_SIZE')
        with open('/proc/self/statm', encoding='ascii') as file:
            whole, resident = (int(x) * page for x in file.read().split()[:2])
        resource.setrlimit(resource.RLIMIT_AS, (whole + GUARD, whole + GUARD))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.write(says, f'{resident}\n'.encode())
        try:
            attack.read(path)
            said = 'accepted'
        except ContactSimError as error:
            said = f'ours: {type(error).__name__}: {error}'
        except BaseException as error:
            said = f'raw: {type(error).__name__}: {error}'
    finally:
        os.write(says, said.encode(errors='replace')[:1000])
        os._exit(0)


def warm() -> None:
    """Import what readers need, so that it counts for none of them."""
    import coal  # noqa: F401
    import trimesh
    from PIL import Image

    Image.init()
    for module in ('pyarrow.parquet', 'rosbags.rosbag2', 'rosbags.typesys', 'mcap.writer', 'yaml',
                   'xacro', 'onnxruntime'):  # fmt: skip
        __import__(module)
    trimesh.load_scene(io.BytesIO(b'v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n'), file_type='obj')
    with tempfile.TemporaryDirectory() as folder:
        recorded(Path(folder))


def main() -> int:
    """Print the table; return 1 where a file was too costly or answered in foreign words."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--only', default='', help='attacks whose name has this')
    parser.add_argument(
        '--skip', nargs='*', default=[], help='attacks whose name has one of these'
    )
    parser.add_argument('--json', type=Path, help='file for the outcomes')
    parser.add_argument('--limit', type=float, default=2.0**30, help='limit of bytes')
    parser.add_argument('--patience', type=float, default=100.0, help='seconds before it hangs')
    options = parser.parse_args()
    warm()
    print('| attack | file | peak memory | time | answer |\n|---|--:|--:|--:|---|', flush=True)
    bad, outcomes = 0, []
    for attack in attacks():
        if options.only not in attack.name or any(word in attack.name for word in options.skip):
            continue
        outcome = measure(attack, options.limit, options.patience)
        outcomes.append(asdict(outcome))
        bad += not outcome.ours or outcome.peak > 2.0 * options.limit
        said = ' '.join(outcome.said.split())[:110].replace('|', '/')
        print(
            f'| {outcome.name} | {outcome.size / 1e3:.1f} kB | {outcome.peak / 1e6:.0f} MB | '
            f'{outcome.cpu:.2f} s | {said} |', flush=True,
        )  # fmt: skip
    if options.json is not None:
        options.json.write_text(json.dumps(outcomes), encoding='utf-8')
    print(f'\n{bad} too costly, hanging, or answered in foreign words')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
