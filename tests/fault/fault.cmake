# SPDX-License-Identifier: Apache-2.0
# Driver calls that fail, one at a time, and GPUs that are lost, on the fake driver.

if(cmocka_FOUND)
    # Thousands of runtimes, each of which takes a quarter of a second under the thread sanitizer. The
    # address sanitizer's build has the debug build's assertions.
    if(NOT build MATCHES "^(tsan|debug)$")
        filch_fake_test(sweep SOURCES fault/test_sweep.c fault/scenarios.c KIND fault SECONDS 400)
    endif()
    filch_fake_test(loss SOURCES fault/test_loss.c KIND fault SECONDS 120)
endif()
