"""The compiled modules: every `.pyx` under connector/, built against Python's stable ABI.

The rest of the build is in pyproject.toml. One wheel serves every Python from 3.11 on; the modules are
checked C made by Cython (bounds checks stay on) and are small, because no debug information is kept.
"""

from __future__ import annotations

from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_py import build_py

ABI = "0x030B0000"


def extensions() -> list[Extension]:
    """One extension per `.pyx`, named after its place in the package."""
    return [
        Extension(
            ".".join(path.with_suffix("").parts),
            [str(path)],
            define_macros=[("Py_LIMITED_API", ABI)],
            py_limited_api=True,
            extra_compile_args=["-O2", "-g0"],
        )
        for path in sorted(Path("connector").glob("**/*.pyx"))
    ]


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


setup(
    cmdclass={"build_py": BuildPy},
    ext_modules=cythonize(extensions(), language_level=3) if extensions() else [],
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if extensions() else {},
)
