/* SPDX-License-Identifier: Apache-2.0 */
#include "filch/status.h"

const char *filch_status_name(filch_status status)
{
    switch (status) {
#define STATUS_NAME(name, number, message) \
    case FILCH_##name:                     \
        return #name;
        FILCH_STATUS_TABLE(STATUS_NAME)
#undef STATUS_NAME
    }
    return "UNKNOWN";
}

const char *filch_status_message(filch_status status)
{
    switch (status) {
#define STATUS_MESSAGE(name, number, message) \
    case FILCH_##name:                        \
        return message;
        FILCH_STATUS_TABLE(STATUS_MESSAGE)
#undef STATUS_MESSAGE
    }
    return "a status that this version of filch does not know";
}
