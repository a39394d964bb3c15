"""What pyproject.toml cannot say: a wheel carries configs and tools below lvit_dense/.mim, where OpenMMLab's mim looks.

An editable installation stays as it is: its configs and tools are those of the clone.
"""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

SHIPPED = ("model-index.yml", "configs/**/*.py", "configs/**/*.yml", "tools/*.py", "tools/*.sh")


class BuildWithMim(build_py):
    """The standard build, and copies of ``SHIPPED``."""

    def run(self) -> None:
        """Build, then copy."""
        super().run()
        if self.editable_mode:
            return
        for source, target in self._copies().items():
            self.mkpath(str(target.parent))
            self.copy_file(str(source), str(target))

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        """All files that the build makes."""
        return [*super().get_outputs(include_bytecode), *map(str, self._copies().values())]

    def _copies(self) -> dict[Path, Path]:
        root, below = Path(__file__).resolve().parent, Path(self.build_lib, "lvit_dense", ".mim")
        sources = sorted(path for pattern in SHIPPED for path in root.glob(pattern))
        return {source: below / source.relative_to(root) for source in sources}


setup(cmdclass={"build_py": BuildWithMim})
