# SPDX-License-Identifier: Apache-2.0
"""The Spack recipe, run with stand-ins for Spack's own modules: what it needs is what CMakeLists.txt asks for, and the
options that it gives are there. Run at the top of the tree."""
import os
import re
import sys
import types

RECIPE = 'packaging/spack/spack_repo/filch/packages/filch/package.py'
needs, options, directives = {}, {}, []


class CMakePackage:
    """Notes the definitions as Spack's class does."""

    def define(self, name, value):
        options[name] = value

    def define_from_variant(self, name, variant):
        if variant not in [args[0] for kind, args in directives if kind == 'variant']:
            sys.exit('there is no variant ' + variant)
        options[name] = variant


def note(kind):
    return lambda *args, **_: directives.append((kind, args))


spack = types.ModuleType('spack')
package = types.ModuleType('spack.package')
for kind in ['license', 'version', 'variant', 'depends_on', 'conflicts']:
    setattr(package, kind, note(kind))
names = 'spack_repo spack_repo.builtin spack_repo.builtin.build_systems spack_repo.builtin.build_systems.cmake'.split()
sys.modules.update({name: types.ModuleType(name) for name in names}, spack=spack)
sys.modules['spack.package'] = package
sys.modules[names[-1]].CMakePackage = CMakePackage

scope = {'__file__': os.path.abspath(RECIPE), '__name__': 'recipe'}
with open(RECIPE, encoding='utf-8') as file:
    exec(compile(file.read(), RECIPE, 'exec'), scope)
recipe = scope['Filch']()
recipe.cmake_args()

with open('CMakeLists.txt', encoding='utf-8') as file:
    cmake = file.read()


def demand(is_so, what):
    if not is_so:
        sys.exit(RECIPE + ': ' + what)


wanted = dict(re.findall(r'pkg_check_modules\((\w+) REQUIRED IMPORTED_TARGET \w+>=([\d.]+)', cmake))
wanted['cmake'] = re.search(r'cmake_minimum_required\(VERSION ([\d.]+)\)', cmake)[1]
for kind, args in directives:
    if kind == 'depends_on' and '@' in args[0]:
        name, version = args[0].split('@')
        needs[name] = version.rstrip(':')
demand(needs == wanted, 'needs %s, and CMakeLists.txt %s' % (needs, wanted))
demand({'c', 'pkgconfig'} <= {args[0] for kind, args in directives if kind == 'depends_on'}, 'no compiler or pkg-config')
known = set(re.findall(r'(?:option\(|set\()(FILCH_\w+) ', cmake))
demand(options and set(options) <= known, 'unknown options: %s' % (set(options) - known))
demand(('license', ('Apache-2.0',)) in directives, 'another licence')
demand(recipe.git == 'file://' + os.path.realpath('.'), 'another checkout: ' + recipe.git)
print('spack: %d needs and %d options, as CMakeLists.txt has them' % (len(needs), len(options)))
