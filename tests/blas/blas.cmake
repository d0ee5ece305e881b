# SPDX-License-Identifier: Apache-2.0
# The drop-in BLAS: programs that know nothing of filch, run with it in front of their BLAS.

if(NOT openblas_FOUND)
    return()
endif()
pkg_check_modules(blas_lapacke IMPORTED_TARGET lapacke)
if(NOT blas_lapacke_FOUND)
    message(STATUS "filch tests: blas left out (no LAPACKE)")
    return()
endif()

set(blas ${CMAKE_CURRENT_SOURCE_DIR}/blas)
file(GLOB sources CONFIGURE_DEPENDS ${blas}/client*.c)

# Everything goes to filch, and in many tiles: on cores of the host, or on two GPUs of the fake driver.
set(all FILCH_BLAS_LEAST_FLOPS=0 FILCH_BLAS_TILE=16)
set(on_host ${all} FILCH_BLAS_DEVICES=host:2)
# Nothing is compiled: the fake driver has no twins of what a real NVRTC makes.
set(fake LD_LIBRARY_PATH=${fakecuda_out} FILCH_NVRTC=/nonexistent/libnvrtc.so FILCH_CACHE_DIR=off)
set(on_fake ${all} FILCH_BLAS_DEVICES=cuda ${fake})
set(on_both ${all} FILCH_BLAS_DEVICES=cuda,host:1 ${fake})
# Four threads share a copy; with ${all} each copy that is long enough, whichever way is faster.
set(shared FILCH_BLAS_COPY_THREADS=4)

# filch_blas_test(NAME SECONDS COMMAND ... ENVIRONMENT ...): the environment beside that of all.
function(filch_blas_test name seconds)
    cmake_parse_arguments(arg "" "" "COMMAND;ENVIRONMENT" ${ARGN})
    filch_test(${name} blas ${seconds} ${arg_COMMAND})
    set_property(TEST blas.${name}.${build} APPEND PROPERTY ENVIRONMENT OPENBLAS_NUM_THREADS=1
                 ${arg_ENVIRONMENT})
    set(targets fakecuda fakecublas fakecusolver)
    if(TARGET filch_blas)
        list(APPEND targets filch_blas filch_blas64 filch_blas_engine)
    endif()
    list(TRANSFORM targets REPLACE "(.+)" "$<TARGET_FILE:\\1>")
    filch_test_targets(blas.${name}.${build} ${targets})
endfunction()

if(cmocka_FOUND)
    set(front ${PROJECT_SOURCE_DIR}/kernels/blas)
    foreach(name IN ITEMS rates undo)
        add_executable(blas_${name} ${blas}/test_${name}.c ${front}/${name}.c ${front}/call.c)
        target_include_directories(blas_${name} PRIVATE ${PROJECT_SOURCE_DIR}
                                   ${PROJECT_SOURCE_DIR}/include)
        target_link_libraries(blas_${name} PRIVATE filch_flags PkgConfig::cmocka Threads::Threads m)
        filch_blas_test(${name} 60 COMMAND blas_${name})
    endforeach()
endif()

# Sanitized builds have no shared libraries: programs are linked with all parts of the drop-in.
if(NOT TARGET filch_blas)
    file(GLOB parts CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/kernels/blas/*.c)
    list(FILTER parts EXCLUDE REGEX "/(ilp64|lp64_)[^/]*$")
    foreach(name IN ITEMS client copies crowd)
        set(mains ${blas}/${name}.c)
        if(name STREQUAL "client")
            set(mains ${sources})
        endif()
        add_executable(blas_${name} ${mains} ${parts})
        set_target_properties(blas_${name} PROPERTIES ENABLE_EXPORTS ON)
        target_link_libraries(blas_${name} PRIVATE filch_flags filch_dense PkgConfig::openblas
                              PkgConfig::blas_lapacke Threads::Threads m ${CMAKE_DL_LIBS})
    endforeach()
    filch_blas_test(crowd_fake 120 COMMAND blas_crowd ENVIRONMENT ${on_fake})
    filch_blas_test(crowd 120 COMMAND blas_crowd ENVIRONMENT ${on_host})
    filch_blas_test(copies 120 COMMAND blas_copies ENVIRONMENT ${on_host} ${shared})
    filch_blas_test(copies_measured 120 COMMAND blas_copies ENVIRONMENT FILCH_BLAS_COPY_THREADS=2)
    if(build STREQUAL "asan")
        filch_blas_test(host 120 COMMAND blas_client ENVIRONMENT ${on_host})
        filch_blas_test(fake 120 COMMAND blas_client --sizes 7,40 gemm trsm potrf gesv geqrf ormqr gels
                        ENVIRONMENT ${on_fake})
    endif()
    return()
endif()

add_executable(blas_client ${sources})
foreach(name IN ITEMS copies crowd idle wide time)
    add_executable(blas_${name} ${blas}/${name}.c)
endforeach()
foreach(target IN ITEMS blas_client blas_copies blas_crowd blas_idle blas_wide blas_time)
    target_link_libraries(${target} PRIVATE filch_flags PkgConfig::openblas PkgConfig::blas_lapacke
                          Threads::Threads m ${CMAKE_DL_LIBS})
endforeach()
# The same program with the drop-in linked before its BLAS.
add_executable(blas_linked ${sources})
target_link_libraries(blas_linked PRIVATE filch_flags filch_blas PkgConfig::openblas
                      PkgConfig::blas_lapacke m)
add_executable(blas_alone ${blas}/alone.c)
target_link_libraries(blas_alone PRIVATE filch_flags filch_blas m)

set(run ${PROJECT_BINARY_DIR}/kernels/blas/filch-run)
set(through ${blas}/through.sh ${run})
set(routines)
foreach(name IN ITEMS gemm symm syrk trmm trsm potrf getrf geqrf ormqr gels potrs getrs posv gesv)
    string(APPEND routines "d${name} s${name} ")
endforeach()

filch_blas_test(plain 60 COMMAND $<TARGET_FILE:blas_client>)
filch_blas_test(next 60 COMMAND ${through} - $<TARGET_FILE:blas_client>)
filch_blas_test(no_device 60 COMMAND ${through} - $<TARGET_FILE:blas_client>
                ENVIRONMENT FILCH_BLAS_LEAST_FLOPS=0 FILCH_BLAS_DEVICES=cuda:77)
filch_blas_test(host 60 COMMAND ${through} ${routines} $<TARGET_FILE:blas_client>
                ENVIRONMENT ${on_host})
# Tiles so large that triangles are solved for by halves.
filch_blas_test(host_halves 60 COMMAND ${through} "dtrsm strsm dpotrf dgetrf dgetrs" $<TARGET_FILE:blas_client>
                --sizes 90,200 trsm potrf getrf getrs ENVIRONMENT ${on_host} FILCH_BLAS_TILE=100)
filch_blas_test(linked 60 COMMAND blas_linked --sizes 9,50 ENVIRONMENT ${on_host})
filch_blas_test(fake 120 COMMAND ${through} ${routines} $<TARGET_FILE:blas_client>
                ENVIRONMENT ${on_fake})
filch_blas_test(both 120 COMMAND ${through} ${routines} $<TARGET_FILE:blas_client> --sizes 9,50
                ENVIRONMENT ${on_both})
# So little memory that tiles come and go.
filch_blas_test(short 120 COMMAND ${through} "dgemm dpotrf dgesv" $<TARGET_FILE:blas_client> --sizes 7,60
                gemm potrf gesv ENVIRONMENT ${on_fake} FILCH_MEMORY_LIMIT=32K)
filch_blas_test(faults 120 COMMAND ${blas}/faults.sh ${run} $<TARGET_FILE:blas_client>
                ENVIRONMENT ${on_fake})
filch_blas_test(settings 60 COMMAND ${blas}/settings.sh ${run} $<TARGET_FILE:blas_client>
                ENVIRONMENT ${on_host})
filch_blas_test(crowd 60 COMMAND ${through} "dgemm spotrf" $<TARGET_FILE:blas_crowd>
                ENVIRONMENT ${on_host})
filch_blas_test(crowd_fake 120 COMMAND ${through} "dgemm spotrf" $<TARGET_FILE:blas_crowd>
                ENVIRONMENT ${on_fake})
filch_blas_test(copies 60 COMMAND ${through} "scopy dcopy ccopy zcopy" $<TARGET_FILE:blas_copies>
                ENVIRONMENT ${on_host} ${shared})
filch_blas_test(copies_measured 60 COMMAND ${through} "dcopy" $<TARGET_FILE:blas_copies>
                ENVIRONMENT FILCH_BLAS_COPY_THREADS=2)
# Without a setting of its own those of other libraries count: OpenBLAS's 1, which all tests have, and
# OpenMP's.
filch_blas_test(copies_openblas 60 COMMAND ${through} - $<TARGET_FILE:blas_copies>
                ENVIRONMENT ${on_host})
filch_blas_test(copies_openmp 60 COMMAND ${through} "scopy dcopy ccopy zcopy" env -u
                OPENBLAS_NUM_THREADS $<TARGET_FILE:blas_copies> ENVIRONMENT ${on_host} OMP_NUM_THREADS=3)
filch_blas_test(copies_alone 60 COMMAND ${through} - $<TARGET_FILE:blas_copies>
                ENVIRONMENT ${on_host} FILCH_BLAS_COPY_THREADS=1)
filch_blas_test(idle 60 COMMAND ${run} $<TARGET_FILE:blas_idle>)
filch_blas_test(alone 60 COMMAND blas_alone ENVIRONMENT FILCH_BLAS_NEXT=/nonexistent)
# Of the program that times both; that it runs, and that its results are right.
filch_blas_test(time 60 COMMAND $<TARGET_FILE:blas_time> --front $<TARGET_FILE:filch_blas> --repeat 1 100
                ENVIRONMENT ${on_fake})
filch_blas_test(wide_openblas 60 COMMAND ${through} "dgemm dgetrf" $<TARGET_FILE:blas_wide> dgemm_64_
                cblas_dgemm64_ LAPACKE_dgetrf64_ ENVIRONMENT ${on_host})
filch_blas_test(wide_scipy 60 COMMAND ${through} "dgemm dgetrf" $<TARGET_FILE:blas_wide>
                scipy_dgemm_64_ scipy_cblas_dgemm64_ scipy_LAPACKE_dgetrf64_ ENVIRONMENT ${on_host})
filch_blas_test(wide_reference 60 COMMAND ${through} "dgemm dgetrf" $<TARGET_FILE:blas_wide>
                dgemm_64 cblas_dgemm_64 LAPACKE_dgetrf_64 ENVIRONMENT ${on_host})
filch_blas_test(wide_plain 60 COMMAND ${run} --64 $<TARGET_FILE:blas_wide> dgemm_ cblas_dgemm
                LAPACKE_dgetrf ENVIRONMENT ${on_fake})
filch_blas_test(numpy_suite 120 COMMAND ${blas}/numpy_suite.sh ${run} ENVIRONMENT ${on_host})
foreach(where IN ITEMS host fake)
    filch_blas_test(arrays_${where} 120 COMMAND ${through}
                    "dgemm sgemm dsyrk dpotrf dgesv dgetrf dgetrs dgeqrf dposv"
                    /usr/bin/python3 ${blas}/arrays.py ENVIRONMENT ${on_${where}})
    # Heavy packages, which tests/setup.sh does not install: r-base-core and octave.
    filch_blas_test(r_${where} 120 COMMAND ${through} "dgemm dsyrk dpotrf dgesv" R --no-save --slave -f
                    ${blas}/base.R ENVIRONMENT ${on_${where}} FILCH_BLAS_TILE=64)
    filch_blas_test(octave_${where} 120 COMMAND ${through}
                    "dgemm sgemm dsyrk dpotrf dgetrf dgetrs dgeqrf" octave-cli --norc
                    ${blas}/products.m ENVIRONMENT ${on_${where}} FILCH_BLAS_TILE=64)
endforeach()
foreach(processes IN ITEMS 1 2)
    filch_blas_test(hpl_host_${processes} 60 COMMAND ${blas}/hpl.sh ${run} ${processes} 0
                    ENVIRONMENT ${on_host} FILCH_BLAS_TILE=64)
    filch_blas_test(hpl_fake_${processes} 60 COMMAND ${blas}/hpl.sh ${run} ${processes} 1
                    ENVIRONMENT ${on_fake} FILCH_BLAS_TILE=64)
endforeach()
