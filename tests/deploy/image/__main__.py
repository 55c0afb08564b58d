"""Build the image, run every process from it as the manifests say, and play the demo: `make image`.

    base image from Debian packages → deploy/Dockerfile → roles.sql without a superuser → the migration's Job
    → init containers → gateway, workers, beat, Flower → probes → demo → jobs → stop

It prints what it has seen, and ends with 1 and a message at the first step that fails.
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from tests.deploy.image import runtimes, stores, tools
from tests.deploy.image.build import Builder
from tests.deploy.image.fleet import Fleet


def main() -> int:
    """Run all steps; return the exit code."""
    parser = argparse.ArgumentParser(prog="make image")
    parser.add_argument("--suite", default="trixie", help="the Debian release of the base image")
    parser.add_argument("--without-runc", action="store_true", help="run the containers by chroot")
    options = parser.parse_args()
    try:
        tools.require()
        _check(options.suite, without_runc=options.without_runc)
    except tools.Failed as error:
        sys.stderr.write(f"failed: {error}\n")
        return 1
    return 0


def _check(suite: str, *, without_runc: bool) -> None:
    folder = Path(tempfile.mkdtemp(prefix="loci-image-"))
    builder = Builder(folder)
    try:
        builder.make_base(suite)
        tools.say(f"base image      packages of Debian {suite}")
        builder.make_image()
        tools.say(f"image           {builder.size_in_megabytes()} MB, no setting of pip in any layer")
        root = builder.mount()
        runtime, reason = runtimes.choose(root, folder, without_runc=without_runc)
        tools.say(f"containers      {reason}")
        with stores.running(folder / "stores") as running:
            Fleet(root, folder, running, runtime).play()
    finally:
        builder.close()
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
