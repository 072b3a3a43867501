#include "backends/backend.h"

const clt_backend_row clt_clfft_rows[] = {{0}};
