/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file filch.hpp
 * C++17 interface: owners, exceptions, and tasks from lambdas, over the C interface. Headers alone;
 * a program links the library as a C program does.
 *
 *     filch::runtime runtime("host");
 *     filch::data x = runtime.data(filch::buffer(px, n).tiles(n / 8));
 *     filch::data y = runtime.data(filch::buffer(py, n).tiles(n / 8));
 *     filch::graph graph = runtime.graph();
 *     for (std::uint32_t i = 0; i < x.tile_rows(); ++i)
 *         graph.add("axpy",
 *                   [a](filch::view<const double> x, filch::view<double> y) {
 *                       for (std::uint64_t k = 0; k < x.rows; ++k)
 *                           y[k] += a * x[k];
 *                   },
 *                   filch::read(x.tile(i)), filch::readwrite(y.tile(i)));
 *     graph.run();
 *
 * Statuses become exceptions of type filch::error. Destructors never throw. Members of the C
 * interface without a counterpart take the handle() of an owner. Guide: docs/cpp.md.
 *
 * The headers work with -fno-rtti, and not with -fno-exceptions.
 */
#ifndef FILCH_FILCH_HPP
#define FILCH_FILCH_HPP

#include "filch/cpp/access.hpp"
#include "filch/cpp/batch.hpp"
#include "filch/cpp/csr.hpp"
#include "filch/cpp/data.hpp"
#include "filch/cpp/error.hpp"
#include "filch/cpp/graph.hpp"
#include "filch/cpp/job.hpp"
#include "filch/cpp/local.hpp"
#include "filch/cpp/pending.hpp"
#include "filch/cpp/runtime.hpp"
#include "filch/cpp/task.hpp"
#include "filch/cpp/view.hpp"

#endif
