# SPDX-License-Identifier: Apache-2.0
# Each *.pml here is a protocol that spin explores exhaustively. Options stand in the model itself:
#     /* cc: -DNAME=2 */      for the compiler of the verifier
#     /* pan: -a -f */        for the verifier (-a: search for cycles that starve somebody)

file(GLOB models CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/model/*.pml)
foreach(model IN LISTS models)
    cmake_path(GET model STEM name)
    filch_test(${name} model 300 ${CMAKE_CURRENT_SOURCE_DIR}/model/verify.sh ${model}
               ${PROJECT_BINARY_DIR}/model/${name})
endforeach()
