# SPDX-License-Identifier: Apache-2.0
# Included where FILCH_PYTHON_DIR is set: the Python package is installed beside the library, and
# loads that library.

if(IS_ABSOLUTE "${FILCH_PYTHON_DIR}")
    message(FATAL_ERROR "FILCH_PYTHON_DIR is a folder below the prefix: ${FILCH_PYTHON_DIR}")
endif()
set(libdir "${CMAKE_INSTALL_LIBDIR}")
if(NOT IS_ABSOLUTE "${libdir}")
    file(RELATIVE_PATH libdir "/prefix/${FILCH_PYTHON_DIR}/filch" "/prefix/${libdir}")
endif()
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/installed.py
"# SPDX-License-Identifier: Apache-2.0
\"\"\"Where the library was installed together with this package, from the package's folder.\"\"\"
FOLDER = \"${libdir}\"
")
install(DIRECTORY ${PROJECT_SOURCE_DIR}/bindings/python/filch DESTINATION ${FILCH_PYTHON_DIR}
        COMPONENT python_beside FILES_MATCHING PATTERN "*.py")
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/installed.py DESTINATION ${FILCH_PYTHON_DIR}/filch
        COMPONENT python_beside)
