# SPDX-License-Identifier: Apache-2.0
# The prohibitions of the architecture, as tests over sources and built libraries.

set(check ${CMAKE_CURRENT_SOURCE_DIR}/check)
filch_test(layers check 60 ${check}/layers.sh)
filch_test(size check 60 ${check}/size.sh)
filch_test(structure check 60 ${check}/structure.sh)
filch_test(rooms check 60 ${check}/rooms.sh $<TARGET_FILE:filch_static>)
filch_test(once check 60 ${check}/once.sh)
filch_test(names check 60 ${check}/names.sh)
filch_test(declared check 60 ${check}/declared.sh ${CMAKE_C_COMPILER}
           ${CMAKE_Fortran_COMPILER})
filch_test(wrapped check 60 ${check}/wrapped.sh)
filch_test(prose check 60 ${check}/prose.sh)
filch_test(format check 60 ${check}/format.sh)
filch_test(tidy check 600 ${check}/tidy.sh ${PROJECT_BINARY_DIR})
filch_test(state check 60 ${check}/state.sh $<TARGET_FILE:filch_static>)
filch_test(calls check 60 ${check}/calls.sh $<TARGET_FILE:filch_static>)
filch_test(exports check 60 ${check}/exports.sh ${PROJECT_SOURCE_DIR}/include/filch
           $<TARGET_FILE:filch> $<TARGET_FILE:filch_system>)
filch_test(versions check 60 ${check}/versions.sh ${PROJECT_SOURCE_DIR}/runtime/filch.map
           ${PROJECT_SOURCE_DIR}/include/filch ${PROJECT_VERSION} $<TARGET_FILE:example_heat>
           $<TARGET_FILE:filch> $<TARGET_FILE:filch_system>)
filch_test(project check 60 ${check}/project.sh)
set(manuals filch.7 filch-run.1)
if(TARGET filch-bench AND TARGET filch-man)
    list(APPEND manuals filch-bench.1)
endif()
list(TRANSFORM manuals PREPEND ${PROJECT_BINARY_DIR}/docs/man/)
filch_test(spack check 60 ${check}/spack.sh)
filch_test(docs check 120 ${check}/docs.sh ${PROJECT_BINARY_DIR}/site-test ${manuals})
filch_test_targets(check.docs.${build} filch-man)
if(TARGET filch-bench AND TARGET filch-man)
    filch_test(man check 60 ${check}/man.sh ${PROJECT_BINARY_DIR}/docs/man)
    filch_test_targets(check.man.${build} filch-man)
endif()
if(TARGET filch-bench)
    filch_test(commands check 60 ${check}/commands.sh $<TARGET_FILE:filch-bench>)
    if(TARGET test_sim_random)
        filch_test(schedules check 120 ${check}/schedules.sh $<TARGET_FILE:filch-bench>
                   $<TARGET_FILE:test_sim_random>)
    endif()
endif()
