#include "devices.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include <cltrain/device.h>

#include "tools/common/message.h"
#include "tools/survey/document.h"
#include "tools/survey/look.h"

static const char *type_name(clt_device_type type) {
    static const char *const names[] = {"gpu", "accelerator", "cpu", "other"};
    return type >= CLT_DEVICE_GPU && type <= CLT_DEVICE_OTHER ? names[type] : "other";
}

static double gibibytes(uint64_t bytes) {
    return (double)bytes / (1 << 30);
}

static void print_text(const clt_device_info *infos, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const clt_device_info *d = &infos[i];
        printf("%zu  %-11s %s\n", i, type_name(d->type), d->name);
        printf("     id        %s\n", d->id);
        printf("     platform  %s, %s\n", d->platform, d->cl_version);
        printf("     driver    %s\n", d->driver);
        printf("     units     %u", d->compute_units);
        if (d->clock_mhz) printf(" at %u MHz", d->clock_mhz);
        printf("\n     memory    %.1f GiB%s, largest buffer %.1f GiB\n", gibibytes(d->memory_bytes),
               d->unified_memory ? " shared with the host" : "", gibibytes(d->max_buffer_bytes));
        if (d->unusable[0]) printf("     unusable  %s\n", d->unusable);
    }
}

static int print_json(const clt_device_info *infos, size_t count, const char *path) {
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        const clt_device_info *d = &infos[i];
        json_t *row = json_pack(
            "{s:I, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:s?}",
            "index", (json_int_t)i, "id", d->id, "type", type_name(d->type), "name", d->name,
            "vendor", d->vendor, "platform", d->platform, "driver", d->driver,
            "memory_bytes", (json_int_t)d->memory_bytes, "compute_units", (json_int_t)d->compute_units,
            "unusable", d->unusable[0] ? d->unusable : NULL);
        json_array_append_new(list, row);
    }
    json_t *object = json_pack("{s:o}", "devices", list);
    int code = document_write_at(object, path);
    json_decref(object);
    return code;
}

int devices_print(const char *json) {
    clt_device_info *infos = NULL;
    size_t count = 0;
    clt_status status = clt_device_enumerate(&infos, &count);
    if (status < 0) return library_error(status, "listing devices");
    int code = 0;
    if (json) code = print_json(infos, count, json);
    else print_text(infos, count);
    clt_device_infos_free(infos);
    if (code) return code;
    if (count == 0) return run_error("no OpenCL device: %s", clt_error_detail());
    return fflush(stdout) ? run_error("stdout cannot be written") : 0;
}

int device_open(clt_device **device, const char *selector) {
    enum { TIMEOUT_SECONDS = 600 };
    const char *chosen = getenv("CLTRAIN_DEVICE_TIMEOUT");
    clt_status status = look_open(device, selector);
    if (status == CLT_OK && !(chosen && *chosen)) status = clt_device_set_timeout(*device, TIMEOUT_SECONDS);
    return status < 0 ? library_error(status, "opening a device") : 0;
}
