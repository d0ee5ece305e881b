/* SPDX-License-Identifier: Apache-2.0 */
/* What tests cannot do under a sanitizer. */
#ifndef FILCH_TESTS_BLAS_SANITIZED_H
#define FILCH_TESTS_BLAS_SANITIZED_H

/* A sanitizer's allocator holds its locks over a fork: the child of a process with other threads
 * may wait for ever in its first malloc. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CHILD_MAY_ALLOCATE 0
#else
#define CHILD_MAY_ALLOCATE 1
#endif

#endif
