/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file filch.h
 * Public interface: includes every header of filch but filch/multicast.h, for programs whose
 * kernels use multicast objects.
 */
#ifndef FILCH_FILCH_H
#define FILCH_FILCH_H

#include "filch/batch.h"
#include "filch/broadcast.h"
#include "filch/codelet.h"
#include "filch/config.h"
#include "filch/csr.h"
#include "filch/cuda.h"
#include "filch/data.h"
#include "filch/device.h"
#include "filch/graph.h"
#include "filch/job.h"
#include "filch/kernels.h"
#include "filch/pending.h"
#include "filch/policy.h"
#include "filch/repeat.h"
#include "filch/report.h"
#include "filch/runtime.h"
#include "filch/speed.h"
#include "filch/status.h"
#include "filch/trace.h"

#endif
