#include "backends/backend.h"

const clt_backend_row clt_native_rows[] = {
    {0},
};
