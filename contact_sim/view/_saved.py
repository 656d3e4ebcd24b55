"""Animated scenes as one file: a page that any browser opens offline, or a clip.

A clip is what a headless Chromium on this machine sees of a page that is served to it alone. A
`MovingScene` is such a page inside another one, in a notebook or in an example of the gallery.
This module can be imported without viser.
"""

from __future__ import annotations

import contextlib
import html
import importlib.util
import io
import logging
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from pathlib import Path
from signal import SIGKILL, SIGTERM
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from contact_sim import _reading
from contact_sim._types import Array
from contact_sim._validation import checked, count, positive
from contact_sim.collision._terrain import Terrain
from contact_sim.errors import InvalidInput, of_type, shown, summary
from contact_sim.robot._actuators import JointCommand
from contact_sim.robot._model import RobotModel
from contact_sim.simulation._report import StepReport
from contact_sim.simulation._running import RunController
from contact_sim.simulation._simulator import Simulator
from contact_sim.view._process import TOKEN, guarded_server
from contact_sim.view._scene import Camera, Scene, whole_run

if TYPE_CHECKING:
    import viser

Frame = NDArray[np.uint8]
Wrenches = Mapping[str, Array]
CLIP_SIZE = (640, 480)
"""Width and height of a clip."""
LARGEST_SIZE = 4096
"""Pixels of a side of a picture."""
LOADING = 2.0
"""Seconds that a page which already shows the scene has to load its lights."""
MAX_LOOKS = 50
"""Times to look whether a page has loaded."""
MISSING = "<p>A moving scene is shown here where viser is: pip install 'contact_sim[view]'</p>"


def save_page(
    path: str | Path,
    robot: RobotModel,
    ground: Terrain,
    reports: Iterable[StepReport],
    fps: float = 30.0,
    wrenches: Iterable[Wrenches] = (),
) -> Path:
    """Write a page with the animated scene, which any browser opens offline; return its path.

    Args:
        path: of the file, .html.
        robot: to be shown.
        ground: `Simulator.terrain`.
        reports: one per picture.
        fps: pictures per second.
        wrenches: one mapping per picture, as `Scene.show` takes them, for as many as there are.

    Raises:
        InvalidInput: another kind of file, or one that cannot be written; no report.
    """
    with _pictures(robot, ground, reports, wrenches) as (server, pictures, _):
        return write_page(path, server, pictures, fps)


def save_clip(
    path: str | Path,
    robot: RobotModel,
    ground: Terrain,
    reports: Iterable[StepReport],
    fps: float = 30.0,
    wrenches: Iterable[Wrenches] = (),
    size: tuple[int, int] = CLIP_SIZE,
) -> Path:
    """Write a clip of the animated scene, rendered by headless Chromium; return its path.

    Args:
        path: of the file, .mp4, .gif or .webp.
        robot: to be shown.
        ground: `Simulator.terrain`.
        reports: one per picture.
        fps: pictures per second.
        wrenches: one mapping per picture, as `Scene.show` takes them, for as many as there are.
        size: width and height in pixels, even numbers.

    Raises:
        InvalidInput: another kind of file, or one that cannot be written; no report; no Chromium
            on this machine, or one that does not start.
    """
    with _pictures(robot, ground, reports, wrenches) as (server, pictures, camera):
        return write_clip(path, server, pictures, fps, camera, size)


@checked
def render(
    sim: Simulator, size: tuple[int, int] = CLIP_SIZE, camera: Camera | None = None
) -> Frame:
    """Return a picture of a simulation as it is now, (height, width, 3), without a display.

        Image.fromarray(render(sim)).save('now.png')

    Args:
        sim: the simulation.
        size: width and height in pixels, even numbers.
        camera: from where; None: from where the whole robot is seen.

    Raises:
        InvalidInput: no Chromium on this machine, or one that does not start; sizes that are no
            even numbers above 0.
    """
    of_type('sim', sim, Simulator)
    with _pictures(sim.robot, sim.terrain, [sim.last_report], ()) as (server, pictures, framing):
        next(pictures)
        return picture_of(server, camera or framing, size)


def picture_of(server: viser.ViserServer, camera: Camera, size: tuple[int, int]) -> Frame:
    """Return a picture of what a server shows, as `render`."""
    with headless_chromium(server.get_port(), checked_size(size)):
        return next(_frames(client_of(server), [None], camera, size))


@checked
def film(
    path: str | Path,
    sim: Simulator,
    controller: JointCommand | RunController,
    seconds: float,
    fps: float = 30.0,
    size: tuple[int, int] = CLIP_SIZE,
) -> Path:
    """Run a simulation, and write a clip of it as `save_clip` does; return its path.

    Args:
        path: of the file, .mp4, .gif or .webp; .html: a page, as `save_page` writes it.
        sim: the simulation, which goes on from where it is.
        controller: as of `Simulator.run`.
        seconds: simulated time.
        fps: pictures per second, about: there is a whole number of steps between two.
        size: width and height in pixels, even numbers.

    Raises:
        InvalidInput: as `save_clip` and `Simulator.run`.
    """
    of_type('sim', sim, Simulator)
    steps = max(round(1.0 / (positive('fps', fps, '1/s') * sim.time_step)), 1)
    pause = steps * sim.time_step
    reports = [sim.last_report]
    for _ in range(count('pictures in these seconds', round(seconds / pause))):
        sim.run(controller, pause)
        reports.append(sim.last_report)
    if Path(path).suffix == '.html':
        return save_page(path, sim.robot, sim.terrain, reports, 1.0 / pause)
    return save_clip(path, sim.robot, sim.terrain, reports, 1.0 / pause, size=size)


def checked_size(size: tuple[int, int]) -> tuple[int, int]:
    """Return width and height, or raise InvalidInput."""
    width, height = (count(name, n) for name, n in zip(('width', 'height'), size, strict=True))
    if width % 2 or height % 2 or max(width, height) > LARGEST_SIZE:
        raise InvalidInput(f'size = {size}: expected even numbers up to {LARGEST_SIZE}')
    return width, height


def write_page(
    path: str | Path, server: viser.ViserServer, pictures: Iterable[object], fps: float
) -> Path:
    """Write what a server shows as a page; every next one of `pictures` shows the next picture."""
    pause = 1.0 / positive('fps', fps, '1/s')
    with _written(path, ('.html',)) as file:
        recording = None
        for _ in pictures:
            if recording is None:
                recording = server.get_scene_serializer()
            else:
                recording.insert_sleep(pause)
        if recording is None:
            raise InvalidInput(f'{shown(str(path))}: there is no picture to save')
        recording.insert_sleep(pause)
        file.write_text(recording.as_html(), encoding='utf-8')
    return Path(path)


def write_clip(
    path: str | Path,
    server: viser.ViserServer,
    pictures: Iterable[object],
    fps: float,
    camera: Camera,
    size: tuple[int, int] = CLIP_SIZE,
) -> Path:
    """Write what a server shows as a clip, as `write_page`, seen by `camera`."""
    rate = positive('fps', fps, '1/s')
    size = checked_size(size)
    with _written(path, tuple(WRITERS)) as file, headless_chromium(server.get_port(), size):
        frames = _frames(client_of(server), pictures, camera, size)
        first = next(frames, None)
        if first is None:
            raise InvalidInput(f'{shown(str(path))}: there is no picture to save')
        WRITERS[file.suffix](file, chain([first], frames), rate, size)
    return Path(path)


def _frames(
    client: viser.ClientHandle, pictures: Iterable[object], camera: Camera, size: tuple[int, int]
) -> Iterator[Frame]:
    """Yield what a browser sees of one picture after the other, (height, width, 3)."""
    width, height = size

    def look() -> Frame:
        try:
            seen: Frame = client.get_render(
                height, width, position=camera.position, wxyz=camera.wxyz,
                fov=camera.field_of_view, timeout=START_TIMEOUT,
            )  # fmt: skip
        except RuntimeError as error:
            raise InvalidInput(f'Chromium has left the page: {error}') from error
        return seen[..., :3]

    def look_until_it_rests() -> Frame:
        now = look()
        for _ in range(MAX_LOOKS):
            before, now = now, look()
            if np.array_equal(before, now) and np.ptp(now) > 0:
                break
        return now

    for number, _ in enumerate(pictures):
        if number == 0:  # a page that looks the same twice has loaded, but for its lights
            look_until_it_rests()
            time.sleep(LOADING)
            yield look_until_it_rests()
        else:
            yield look()


@contextlib.contextmanager
def _pictures(
    robot: RobotModel, ground: Terrain, reports: Iterable[StepReport], wrenches: Iterable[Wrenches]
) -> Iterator[tuple[viser.ViserServer, Iterator[object], Camera]]:
    """Return a server, an iterator that shows picture after picture on it, and a camera."""
    source = iter(reports)
    first = next(source, None)
    if first is None:
        raise InvalidInput('reports: there is none, expected one per picture')
    with quiet_server() as server:
        scene = Scene(server, robot, ground)
        camera = scene.framing(first)
        camera.aim(server)
        pushes = chain(wrenches, repeat({}))
        moments = zip(chain([first], source), pushes, strict=False)

        def pictures() -> Iterator[StepReport]:
            for report, push in moments:
                scene.show(report, push)
                yield report

        yield server, pictures(), camera


@contextlib.contextmanager
def _written(path: str | Path, suffixes: tuple[str, ...]) -> Iterator[Path]:
    """Return a temporary file that replaces `path` once it is complete, but not after an error."""
    target = Path(path)
    if target.suffix not in suffixes:
        raise InvalidInput(f'{shown(str(path))}: expected a file called {" or ".join(suffixes)}')
    try:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix='.saving-') as folder:
            file = Path(folder, target.name)
            yield file
            os.replace(file, target)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InvalidInput(f'cannot write {shown(str(path))}: {reason}') from error


def _mp4(file: Path, frames: Iterator[Frame], fps: float, size: tuple[int, int]) -> None:
    try:
        import imageio_ffmpeg
    except ImportError as error:
        raise InvalidInput(
            ".mp4 needs imageio-ffmpeg: pip install 'contact_sim[view]', or save a .gif"
        ) from error
    writer = imageio_ffmpeg.write_frames(str(file), size, fps=fps, macro_block_size=2, quality=7)
    writer.send(None)  # it waits for the first frame
    for frame in frames:
        writer.send(np.ascontiguousarray(frame))
    writer.close()


def _images(file: Path, frames: Iterator[Frame], fps: float, size: tuple[int, int]) -> None:
    images: Iterator[Image.Image] = map(Image.fromarray, frames)
    options = {'quality': 60, 'method': 4}
    if file.suffix == '.gif':
        images, options = (image.quantize(128) for image in images), {}
    first, pause = next(images), round(1000.0 / fps)
    first.save(file, save_all=True, append_images=images, duration=pause, loop=0, **options)


WRITERS: dict[str, Callable[[Path, Iterator[Frame], float, tuple[int, int]], None]] = {
    '.mp4': _mp4, '.gif': _images, '.webp': _images,
}  # fmt: skip
"""Writer of a clip, by the suffix of its name."""


# ------------------------------------------------ a server and a browser for this process alone

NAMES = ('chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable')
ARGUMENTS = (
    '--headless', '--no-sandbox', '--disable-gpu', '--enable-unsafe-swiftshader',
    '--use-angle=swiftshader', '--disable-quic', '--no-first-run', '--disable-sync',
    '--disable-background-networking', '--disable-component-update', '--mute-audio',
    '--hide-scrollbars', '--disable-dev-shm-usage',  # containers give /dev/shm 64 MB
)  # fmt: skip
START_TIMEOUT = 60.0
"""Time that a browser has to open the page [s]."""


@contextlib.contextmanager
def quiet_server() -> Iterator[viser.ViserServer]:
    """A server for this process alone, on a free port, that prints nothing."""
    logging.getLogger('websockets.server').setLevel(logging.CRITICAL)  # a browser may just leave
    server = guarded_server('127.0.0.1', 0)
    try:
        yield server
    finally:
        with contextlib.redirect_stdout(io.StringIO()):
            server.stop()


@contextlib.contextmanager
def headless_chromium(port: int, size: tuple[int, int]) -> Iterator[None]:
    """Open the page on a port of this machine in a Chromium."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        raise InvalidInput(
            f'no browser: {", ".join(NAMES)} are not on PATH; install Chromium '
            '(apt-get install chromium), or save an .html page, which needs none'
        )
    with tempfile.TemporaryDirectory(
        prefix='contact_sim-chromium-', ignore_cleanup_errors=True
    ) as profile:
        width, height = size
        command = [
            program, *ARGUMENTS, f'--user-data-dir={profile}', f'--window-size={width},{height}',
            f'http://127.0.0.1:{port}/{TOKEN}/',
        ]  # fmt: skip
        with _reading.lifted():
            process = subprocess.Popen(
                command,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        try:
            yield
        finally:
            for signal in (SIGTERM, SIGKILL):  # to the group of its processes
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(5.0)


def client_of(server: viser.ViserServer) -> viser.ClientHandle:
    """Return the browser that has the page of a server open; wait for it."""
    deadline = time.monotonic() + START_TIMEOUT
    while time.monotonic() < deadline:
        clients = list(server.get_clients().values())
        if clients:
            return clients[0]
        time.sleep(0.05)
    raise InvalidInput(f'Chromium did not open the page within {START_TIMEOUT:.0f} s')


# ------------------------------------------------ inside another page


class MovingScene:
    """Animated scene of a run; the page is created when it is displayed.

        MovingScene(sim.robot, sim.terrain, reports[::33])

    at the end of a cell of a notebook shows it there.

    Args:
        robot: to be shown.
        ground: `Simulator.terrain`.
        reports: one per picture.
        fps: pictures per second.
        height: of the scene in the page [pixels].

    Raises:
        InvalidInput: no report, or one that is none.
    """

    @checked
    def __init__(
        self,
        robot: RobotModel,
        ground: Terrain,
        reports: Sequence[StepReport],
        fps: float = 30.0,
        height: int = 420,
    ) -> None:
        if not len(reports):
            raise InvalidInput('reports: there is none, expected one per picture')
        self._robot, self._ground, self._reports = robot, ground, list(reports)
        self._fps, self._height = positive('fps', fps, '1/s'), count('height', height)

    def page(self) -> str:
        """Return a self-contained page with the scene.

        Raises:
            InvalidInput: viser is not installed.
        """
        if importlib.util.find_spec('viser') is None:
            raise InvalidInput("a moving scene needs viser: pip install 'contact_sim[view]'")
        with quiet_server() as server, tempfile.TemporaryDirectory() as folder:
            scene = Scene(server, self._robot, self._ground)
            scene.visible['normals'] = False  # of every place that might touch
            camera = whole_run([scene.framing(report) for report in self._reports])
            camera.aim(server)
            pictures = map(scene.show, self._reports)
            path = write_page(Path(folder, 'scene.html'), server, pictures, self._fps)
            return path.read_text(encoding='utf-8')

    def _repr_html_(self) -> str:
        if importlib.util.find_spec('viser') is None:
            return MISSING
        return (
            f'<iframe srcdoc="{html.escape(self.page())}" loading="lazy" width="100%" '
            f'height="{self._height}" style="border: 0" title="moving scene"></iframe>'
        )

    def __repr__(self) -> str:
        return summary(self, robot=self._robot.name)
