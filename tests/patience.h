/* SPDX-License-Identifier: Apache-2.0 */
/* How long tests wait for an event that always comes: a limit for hangs alone. However busy the
 * machine is, nothing takes as long. */
#ifndef TESTS_PATIENCE_H
#define TESTS_PATIENCE_H

#define PATIENCE_S 300 /* less than what ctest gives a test */
#define PATIENCE ((double)PATIENCE_S)

#endif
