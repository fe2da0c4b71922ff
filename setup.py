"""The compiled modules: every `.pyx` under connector/, built against Python's stable ABI.

The rest of the build is in pyproject.toml. One wheel serves every Python from 3.11 on; the modules are
checked C made by Cython (bounds checks stay on) and are small, because no debug information is kept.

With `THL_CACHE` set (`make` sets it), a module is compiled once for each state of its sources: a fresh clone takes it
from the cache. `THL_BUILD_PURE` leaves the modules out: `make` installs the checkout while it compiles them.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

ABI = "0x030B0000"
FLAGS = ("-O2", "-g0", "-w")  # no warnings: they are about Cython's C, not ours
CORES = os.cpu_count() or 1
KEPT = 600  # files of the cache: about twelve states of the whole


def extensions() -> list[Extension]:
    """One extension per `.pyx`, named after its place in the package."""
    if os.environ.get("THL_BUILD_PURE"):
        return []
    return [
        Extension(
            ".".join(path.with_suffix("").parts),
            [str(path)],
            define_macros=[("Py_LIMITED_API", ABI)],
            py_limited_api=True,
            extra_compile_args=list(FLAGS),
        )
        for path in sorted(Path("connector").glob("**/*.pyx"))
    ]


class BuildExt(build_ext):
    """Compiles on all cores what the cache does not have."""

    def run(self) -> None:
        """Take modules from the cache, make C of the others, compile that, keep it."""
        from Cython.Build import cythonize

        cache = Cache(Path(os.environ["THL_CACHE"], "modules")) if os.environ.get("THL_CACHE") else None
        every = self.extensions
        keys = {extension.name: cache.key(extension) for extension in every} if cache else {}
        missing = [one for one in every if not (cache and cache.take(keys[one.name], self._place(one)))]
        options = {"force": cache is not None, "nthreads": min(CORES, len(missing)), "quiet": True}
        for one, made in zip(missing, cythonize(missing, language_level=3, **options), strict=True):
            one.sources = made.sources
        self.extensions = missing
        self.parallel = self.parallel or CORES
        self.force = self.force or cache is not None  # what lies there is of another state
        self._compiled = 0
        super().run()
        for one in missing if cache else ():
            cache.keep(keys[one.name], self._place(one))
        self.extensions = every

    def build_extension(self, ext: Extension) -> None:
        """Compile one module, and count it for whoever watches."""
        super().build_extension(ext)
        self._compiled += 1
        print(f"[{self._compiled}/{len(self.extensions)}] {ext.name}", flush=True)

    def _place(self, extension: Extension) -> Path:
        return Path(self.get_ext_fullpath(extension.name))


class Cache:
    """Compiled modules by the digest of all that they are made of.

    Args:
        folder: where.
    """

    def __init__(self, folder: Path) -> None:
        from Cython import __version__
        from Cython.Build.Dependencies import create_dependency_tree

        self._folder = folder
        self._tree = create_dependency_tree(quiet=True)
        compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
        said = subprocess.run([*compiler, "--version"], capture_output=True, text=True, check=True).stdout
        flags = [os.environ.get(name, "") for name in ("CFLAGS", "CPPFLAGS", "LDFLAGS")]
        tools = [__version__, said, *flags, sys.version, platform.machine(), ABI, *FLAGS]
        headers = sorted(Path("connector").glob("**/*.h"))
        self._common = "\0".join(tools) + self._contents(headers)

    def key(self, extension: Extension) -> str:
        """The name in the cache; another one whenever a source, an included one or a tool changes."""
        ours = [
            Path(name) for name in self._tree.all_dependencies(extension.sources[0]) if not Path(name).is_absolute()
        ]
        text = self._common + self._contents(ours)
        return f"{extension.name}-{hashlib.sha256(text.encode()).hexdigest()[:32]}.so"

    def take(self, key: str, place: Path) -> bool:
        """Put a kept module in its place; False when there is none."""
        kept = self._folder / key
        if not kept.exists():
            return False
        if not (place.exists() and place.read_bytes() == kept.read_bytes()):
            _replace(kept, place)
        kept.touch()  # used last
        return True

    def keep(self, key: str, place: Path) -> None:
        """Keep a module for later, and drop those that were not used for longest."""
        self._folder.mkdir(parents=True, exist_ok=True)
        _replace(place, self._folder / key)
        for old in sorted(self._folder.glob("*.so"), key=lambda file: file.stat().st_mtime)[:-KEPT]:
            old.unlink(missing_ok=True)

    @staticmethod
    def _contents(files: Iterable[Path]) -> str:
        return "".join(f"\0{file}\0{file.read_text(encoding='utf-8')}" for file in sorted(files))


def _replace(source: Path, place: Path) -> None:
    """Copy in one step: a process that has the old file loaded keeps it, another never sees half of the new."""
    place.parent.mkdir(parents=True, exist_ok=True)
    new = place.with_name(f".{place.name}.{os.getpid()}")
    shutil.copyfile(source, new)
    new.chmod(0o755)
    new.replace(place)


class BuildPy(build_py):
    """A wheel takes the schemas along; in a checkout they are read where they are."""

    def run(self) -> None:
        """Copy the modules, then the schemas."""
        super().run()
        if not self.editable_mode:
            folder = Path(self.build_lib, "connector", "schemas")
            self.mkpath(str(folder))
            for path in sorted(Path("schemas").glob("*.avsc")):
                self.copy_file(str(path), str(folder / path.name))


if __name__ == "__main__":
    setup(
        cmdclass={"build_py": BuildPy, "build_ext": BuildExt},
        ext_modules=extensions(),
        options={"bdist_wheel": {"py_limited_api": "cp311"}} if extensions() else {},
    )
