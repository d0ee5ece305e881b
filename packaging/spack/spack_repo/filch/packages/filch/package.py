# SPDX-License-Identifier: Apache-2.0
import os

from spack_repo.builtin.build_systems.cmake import CMakePackage

from spack.package import *

# The checkout that this recipe is part of.
CHECKOUT = os.path.realpath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 6))


class Filch(CMakePackage):
    """Work-stealing task runtime for unequal GPUs and cores: a C library with headers for C and C++ and a Fortran
    module, and the drop-in BLAS. The driver and NVRTC are looked for at run time; nothing of CUDA is needed to
    build."""

    git = "file://" + CHECKOUT
    license("Apache-2.0")

    version("main", branch="main")

    variant("blas", default=True, description="Build the drop-in BLAS and filch-run")

    depends_on("c", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("hwloc@2.0:")
    depends_on("jansson@2.10:")

    conflicts("platform=darwin", msg="filch runs on Linux")
    conflicts("platform=windows", msg="filch runs on Linux")

    def cmake_args(self):
        return [
            self.define("FILCH_BENCH", False),
            self.define("FILCH_TESTS", False),
            self.define("FILCH_WERROR", False),
            self.define("FILCH_JEMALLOC", False),
            self.define_from_variant("FILCH_BLAS", "blas"),
        ]
