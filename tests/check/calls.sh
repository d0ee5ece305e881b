#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# calls.sh LIBRARY.a: the library never ends the process, prints, handles signals, or calls what
# keeps its result in the C library's own memory; and each of a few calls has files to itself.
set -euo pipefail

nm -A -u "$1" 2>/dev/null | awk '
BEGIN {
    never = "abort exit _exit _Exit quick_exit __assert_fail atexit at_quick_exit raise kill " \
            "printf vprintf puts putchar __printf_chk __vprintf_chk perror stdout " \
            "signal sigaction __sysv_signal setlocale getenv putenv setenv unsetenv " \
            "strerror strtok asctime ctime gmtime localtime srand rand random " \
            "openblas_set_num_threads"
    count = split(never, words, " ")
    for (i = 1; i <= count; i++)
        forbidden[words[i]] = 1
    owner["secure_getenv"] = "config.c.o"
    owner["stderr"] = "log.c.o"
    owner["malloc"] = owner["free"] = owner["aligned_alloc"] = owner["posix_memalign"] = "memory.c.o"
    owner["mallocx"] = owner["sdallocx"] = "memory.c.o slab.c.o"
    owner["mallctl"] = "slab.c.o"
    owner["pthread_create"] = owner["thrd_create"] = "thread.c.o"
}
{
    symbol = $NF
    sub(/@.*/, "", symbol)
    file = $1
    sub(/:$/, "", file)
    sub(/.*:/, "", file)
    if (symbol in forbidden) {
        print file " uses " symbol
        failed = 1
    } else if (symbol in owner && index(" " owner[symbol] " ", " " file " ") == 0) {
        print file " uses " symbol ", which belongs to " owner[symbol]
        failed = 1
    }
}
END { if (NR == 0) { print "no symbols read"; exit 1 } exit failed }'
echo "calls: none forbidden"
