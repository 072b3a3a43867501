#include "runtime/base/base.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { DETAIL_BYTES = 4096 };

static _Thread_local char detail[DETAIL_BYTES];

const char *clt_status_name(clt_status status) {
    switch (status) {
#define CASE(name, value, message) \
    case name:                     \
        return #name;
        CLT_STATUS_MAP(CASE)
#undef CASE
    }
    return "unknown status";
}

const char *clt_status_message(clt_status status) {
    switch (status) {
#define CASE(name, value, message) \
    case name:                     \
        return message;
        CLT_STATUS_MAP(CASE)
#undef CASE
    }
    return "unknown status";
}

const char *clt_error_detail(void) {
    return detail;
}

clt_status (clt_fail)(clt_status status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(detail, sizeof detail, format, arguments);
    va_end(arguments);
    return status;
}

clt_status (clt_fail_context)(clt_status status, const char *format, ...) {
    char rest[DETAIL_BYTES];
    memcpy(rest, detail, sizeof rest);
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(detail, sizeof detail, format, arguments);
    va_end(arguments);
    if (length >= 0 && (size_t)length < sizeof detail)
        snprintf(detail + length, sizeof detail - (size_t)length, "%s", rest);
    return status;
}

clt_status (clt_fail_memory)(size_t bytes) {
    return clt_fail(CLT_E_NO_MEMORY, "%zu bytes of host memory could not be allocated", bytes);
}

clt_status (clt_fail_again)(clt_status status, const char *text) {
    if (text != detail) snprintf(detail, sizeof detail, "%s", text);
    return status;
}
