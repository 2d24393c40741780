"""`python -m tests.hosting.by_hand FOLDER`: the steps of the Dockerfile where there is no docker, and the app that comes of them.

Every step is run as it is written, by root, in a root folder of its own: this machine's as the base image, which the steps may
write over without changing it (an overlay). The app then runs as docker would run it with a read-only root: as the image's user,
with the image's variables, able to write to its volumes and /tmp alone. One thing is not as in the image: no package is fetched.
What gptviz depends on is borrowed from the tests, and lies beside the image.

It prints what was found, as JSON. It needs a mount namespace of its own (`unshare --mount`), so that nothing stays mounted.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from string import Template

from tests.hosting.starting import HOSTING, ROOT
from tests.waiting import free_port, wait_until

# Streamlit takes itself for a checkout unless its path says otherwise.
BORROWED = "/mnt/site-packages"
# With these, pip does without the network.
OFFLINE = {"PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "PIP_NO_BUILD_ISOLATION": "0", "PYTHONPATH": BORROWED}


@dataclass
class Image:
    """A stage of the build.

    Attributes:
        root: the folder that is its root.
        variables: of its environment.
        user: who its commands run as.
        volumes: folders that something else is mounted on.
        command: what it starts.
        check: what says whether that is healthy.
    """

    root: Path
    variables: dict[str, str] = field(default_factory=lambda: {"PATH": f"{sys.base_prefix}/bin:/usr/sbin:/usr/bin:/sbin:/bin"})
    user: str = "0"
    volumes: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    check: list[str] = field(default_factory=list)

    def inside(self, path: str) -> Path:
        """A path of the image, as this process sees it."""
        return self.root / path.lstrip("/")

    def words(self, *command: str) -> list[str]:
        """How this process runs a command of the image."""
        return ["chroot", f"--userspec={self.user}:{self.user}", str(self.root), *command]


def mount(*arguments: object) -> None:
    subprocess.run(["mount", *map(str, arguments)], check=True)


def instructions(dockerfile: str) -> Iterator[tuple[str, str]]:
    """Its instructions, each with what stands behind it."""
    for line in re.sub(r"\\\n", " ", dockerfile).splitlines():
        if line.strip() and not line.startswith("#"):
            name, _, rest = line.partition(" ")
            yield name, rest.strip()


def base(folder: Path) -> Image:
    """An image that has all that this machine has, but for the checkout."""
    places = {name: folder / name for name in ("upper", "work", "root")}
    for place in places.values():
        place.mkdir(parents=True)
    mount("-t", "overlay", "overlay", "-o", f"lowerdir=/,upperdir={places['upper']},workdir={places['work']}", places["root"])
    image = Image(places["root"])
    mount("-t", "tmpfs", "tmpfs", image.inside(str(ROOT)))
    mount("--rbind", "/dev", image.inside("/dev"))
    image.inside(BORROWED).mkdir(parents=True)
    mount("--bind", Path(sysconfig.get_path("purelib")).resolve(), image.inside(BORROWED))
    for parent in Path(sys.base_prefix).parents:  # Python may lie in a home
        inside = image.inside(str(parent))
        inside.chmod(inside.stat().st_mode | 0o55)
    return image


def kept(ignored: str) -> list[str]:
    """What is sent to the build: of all paths, which .dockerignore leaves out, those that it takes back in."""
    first, *lines = ignored.split()
    assert first == "*"
    return [line.removeprefix("!") for line in lines if line.startswith("!")]


def copy(source: Path, target: Path) -> None:
    """Copy a file or the content of a folder, as COPY does."""
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target)


def copied(rest: str, image: Image, stages: Mapping[str, Image], sent: Path) -> None:
    """The instruction COPY."""
    options, paths = [], rest.split()
    while paths[0].startswith("--"):
        options.append(paths.pop(0))
    origin = stages[options[0].removeprefix("--from=")].root if options else sent
    *sources, target = paths
    for source in sources:
        into = target + Path(source).name if target.endswith("/") and (origin / source.lstrip("/")).is_file() else target
        copy(origin / source.lstrip("/"), image.inside(into))


def built(folder: Path) -> Image:
    """The image of the last stage.

    Raises:
        ValueError: the Dockerfile has an instruction that is not known here.
    """
    sent = folder / "sent"
    for path in kept((ROOT / ".dockerignore").read_text()):
        copy(ROOT / path, sent / path)
    stages: dict[str, Image] = {}
    image = Image(folder)
    for number, (name, rest) in enumerate(instructions((HOSTING / "Dockerfile").read_text())):
        match name:
            case "FROM":
                image = base(folder / f"stage-{number}")
                stages[rest.rpartition(" AS ")[2]] = image
            case "ARG":
                pass
            case "COPY":
                copied(rest, image, stages, sent)
            case "RUN":
                environment = image.variables | OFFLINE
                subprocess.run(image.words("/bin/sh", "-c", rest), env=environment, cwd="/", check=True, stdout=sys.stderr)
            case "ENV":
                pairs = (pair.partition("=") for pair in rest.split())
                image.variables |= {key: Template(value).substitute(image.variables) for key, _, value in pairs}
            case "USER":
                image.user = rest
            case "VOLUME":
                image.volumes.append(rest)
            case "EXPOSE":
                image.variables["PORT"] = str(free_port())  # every other one may be taken on this machine
            case "HEALTHCHECK":
                image.check = json.loads(rest.partition("CMD ")[2])
            case "CMD":
                image.command = json.loads(rest)
            case _:
                raise ValueError(f"{name} is an instruction that is not known here")
    return image


def found(image: Image) -> dict[str, object]:
    """What is seen of the app while it runs in its image, and of its end."""
    for place in (*image.volumes, "/tmp"):
        owner = image.inside(place).stat()
        mount("-t", "tmpfs", "tmpfs", image.inside(place))
        os.chown(image.inside(place), owner.st_uid, owner.st_gid)
        image.inside(place).chmod(owner.st_mode & 0o7777)
    mount("-o", "remount,bind,ro", image.root)
    environment = image.variables | {"PYTHONPATH": BORROWED, "ADDRESS": "127.0.0.1"}
    options = {"env": environment, "cwd": "/", "stdout": sys.stderr}

    def run(*command: str) -> bool:
        return not subprocess.run(image.words(*command), **options).returncode  # type: ignore[call-overload]

    facts: dict[str, object] = {"healthy before": run(*image.check)}
    process = subprocess.Popen(image.words(*image.command), **options)  # type: ignore[call-overload]
    try:
        wait_until(lambda: run(*image.check) or process.poll() is not None)
        facts["healthy"] = run(*image.check)
        facts["user"] = os.stat(f"/proc/{process.pid}").st_uid
        with urllib.request.urlopen(f"http://127.0.0.1:{image.variables['PORT']}/", timeout=60) as answer:
            facts["page"] = answer.status
        where = "import gptviz, gptviz.location as l; print(gptviz.__file__, l.APP)"
        facts["installed"] = subprocess.run(
            image.words("python", "-c", where), env=environment, cwd="/", capture_output=True, text=True
        ).stdout.split()
        tries = ("/opt", "/opt/gptviz", "/", "/etc", "/data", "/tmp")
        facts["writable"] = [place for place in tries if run("/bin/sh", "-c", f"touch {place}/written 2>/dev/null")]
        process.send_signal(signal.SIGTERM)
        facts["ended"] = process.wait(60)
    finally:
        process.kill()
        process.wait()
    return facts


if __name__ == "__main__":
    print(json.dumps(found(built(Path(sys.argv[1])))))
