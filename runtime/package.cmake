# SPDX-License-Identifier: Apache-2.0
# Debian packages, by CPack (README.md):
#   libfilchN     the shared libraries; N is the ABI's version
#   libfilch-dev  headers, the Fortran module, the CMake package, pkg-config's file, the examples, filch(7)
#   filch-blas    the drop-in BLAS and LAPACK, and filch-run with its manual page
#   filch-tools   filch-bench with its manual page
#   python3-filch the Python package
# Included last: components are known by then.

set(library_package libfilch${PROJECT_VERSION_MAJOR})
set(package_of_library ${library_package})
set(package_of_development libfilch-dev)
set(package_of_blas filch-blas)
set(package_of_tools filch-tools)
set(package_of_python python3-filch)

set(components library development python)
if(TARGET filch_blas)
    list(APPEND components blas)
endif()
if(TARGET filch-bench)
    list(APPEND components tools)
endif()

# Where Debian wants a licence and examples; an installation by hand has neither.
foreach(component IN LISTS components)
    install(FILES ${PROJECT_SOURCE_DIR}/LICENSE RENAME copyright COMPONENT ${component}
            DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package_of_${component}} EXCLUDE_FROM_ALL)
endforeach()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs/examples COMPONENT development
        DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/libfilch-dev EXCLUDE_FROM_ALL)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/bindings/python/filch COMPONENT python
        DESTINATION lib/python3/dist-packages EXCLUDE_FROM_ALL FILES_MATCHING PATTERN "*.py")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "The filch maintainers <filch@localhost>" CACHE STRING
    "Maintainer named by packages")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_ALL ${components})
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_STRIP_FILES ON)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")

set(version ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})
foreach(component IN LISTS components)
    string(TOUPPER ${component} upper)
    set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${package_of_${component}})
    set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION libs)
endforeach()
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${library_package} (= ${version})")
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
set(CPACK_DEBIAN_PYTHON_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS
    "${library_package} (>= ${PROJECT_VERSION}), python3 (>= 3.9), python3-numpy")
set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA
    "${PROJECT_SOURCE_DIR}/bindings/python/debian/postinst;${PROJECT_SOURCE_DIR}/bindings/python/debian/prerm")
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION "${PROJECT_DESCRIPTION}: shared libraries")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "${PROJECT_DESCRIPTION}: headers and examples")
set(CPACK_COMPONENT_BLAS_DESCRIPTION "Large BLAS and LAPACK calls of any program on all GPUs and cores")
set(CPACK_COMPONENT_PYTHON_DESCRIPTION "${PROJECT_DESCRIPTION}: Python package")
set(CPACK_COMPONENT_TOOLS_DESCRIPTION "${PROJECT_DESCRIPTION}: bench harness and simulator")
# What is loaded at run time where it is there.
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SUGGESTS "libcuda1, libnvrtc12 | libnvrtc11.2")
set(CPACK_DEBIAN_BLAS_PACKAGE_SUGGESTS "libcuda1, libcublas12 | libcublas11, libcusolver11")
include(CPack)
