/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_CPP_ELSEWHERE_HPP
#define TESTS_CPP_ELSEWHERE_HPP

#include "filch/filch.hpp"

/* A job that outlives its graph: the only tile of x is set to a value. */
filch::job set_elsewhere(filch::runtime &runtime, const filch::data &x, double value);

#endif
