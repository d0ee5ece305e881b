// SPDX-License-Identifier: Apache-2.0
// A second unit of the program owners: the headers define nothing twice.
#include "elsewhere.hpp"

filch::job set_elsewhere(filch::runtime &runtime, const filch::data &x, double value)
{
    filch::graph g = runtime.graph();
    g.add(
        "set", [value](filch::view<double> v) { v[0] = value; }, filch::write(x));
    return g.submit();
}
