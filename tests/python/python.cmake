# SPDX-License-Identifier: Apache-2.0
# The Python package, in the release build: it loads the shared library. tests/python/NAME.py is a
# program and a test. gpu runs on two fake GPUs. Skipped without Debian's python3-numpy; cg needs
# python3-scipy, too.

set(python ${CMAKE_CURRENT_SOURCE_DIR}/python)
set(examples ${PROJECT_SOURCE_DIR}/docs/examples)

add_library(python_kernels MODULE ${python}/kernels.c)
target_include_directories(python_kernels PRIVATE ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(python_kernels PRIVATE filch_flags)

# filch_python_test(NAME MODULES FILE [ARGUMENT...])
function(filch_python_test name modules)
    filch_test(${name} python 60 ${python}/run.sh $<TARGET_FILE:filch_system> ${modules} ${ARGN})
endfunction()

filch_python_test(data numpy ${python}/data.py)
filch_python_test(csr numpy ${python}/csr.py $<TARGET_FILE:python_kernels>)
filch_python_test(devices numpy ${python}/devices.py $<TARGET_FILE:python_kernels>)
filch_python_test(ends numpy ${python}/ends.py)
filch_python_test(graphs numpy ${python}/graphs.py $<TARGET_FILE:python_kernels>)
filch_python_test(halos numpy ${python}/halos.py $<TARGET_FILE:python_kernels>)
filch_python_test(pending numpy ${python}/pending.py)
filch_python_test(repeat numpy ${python}/repeat.py)
filch_python_test(tasks numpy ${python}/tasks.py $<TARGET_FILE:python_kernels>)
filch_python_test(gpu numpy ${python}/gpu.py)
set_property(TEST python.gpu.${build} APPEND PROPERTY ENVIRONMENT "LD_LIBRARY_PATH=${fakecuda_out}"
             "FILCH_NVRTC=$<TARGET_FILE:fakenvrtc_kernels>" "FILCH_CACHE_DIR=off"
             "FAKECUDA_CONFIG={\"devices\": [{\"count\": 2}]}")
filch_test_targets(python.gpu.${build} $<TARGET_FILE:fakecuda> $<TARGET_FILE:fakenvrtc_kernels>)
filch_test(install python 120 ${python}/install.sh $<TARGET_FILE:filch_system>
           ${PROJECT_BINARY_DIR}/python-install ${PROJECT_VERSION})

# The programs of docs/python.md.
filch_python_test(example-tour numpy ${examples}/tour.py $<TARGET_FILE:python_kernels>)
filch_python_test(example-cholesky numpy ${examples}/cholesky.py)
filch_python_test(example-cg numpy,scipy ${examples}/cg.py 20)
