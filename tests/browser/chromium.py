"""Where the browser tests find a browser: one that is installed, else one this script installs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

# The shell is Chromium without windows, made for tests: they take a third less processor time in
# it.
SHELL = "chromium-headless-shell"
NAMES = (SHELL, "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MAC = Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome")


def installed() -> str | None:
    """The path of a browser on this machine: `GPTVIZ_BROWSER`, one on the path, or Playwright's
    own.
    """
    if asked := os.environ.get("GPTVIZ_BROWSER"):
        return asked
    for name in NAMES:
        if found := shutil.which(name):
            return found
    if MAC.exists():
        return str(MAC)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        own = playwright.chromium.executable_path
    return own if Path(own).exists() else None


def install() -> None:
    """Install Chromium: a package of Debian's where apt is there and may be used, else Playwright's
    build.
    """
    apt = shutil.which("apt-get")
    rights = [] if os.name == "posix" and os.geteuid() == 0 else ["sudo", "-n"]
    if apt and (not rights or shutil.which("sudo")):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        update = subprocess.run([*rights, apt, "update", "-qq"], env=environment, check=False)
        for package in (SHELL, "chromium") if update.returncode == 0 else ():
            command = [*rights, apt, "install", "-y", "-qq", package]
            if (
                subprocess.run(
                    command, env=environment, check=False, stdout=subprocess.DEVNULL
                ).returncode
                == 0
            ):
                break
    if installed() is None:
        subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"], check=False)


if __name__ == "__main__":
    if installed() is None:
        install()
    where = installed()
    if where is None:
        sys.exit(
            "no browser: install Chromium or Chrome, or name one in GPTVIZ_BROWSER, and run this "
            "again"
        )
    print(f"browser: {where}")
