/* Which devices there are, how they are named, and which one a selector means. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/device/cl.h"
#include "runtime/device/settings.h"

/* Queries of extensions, by number so that any headers do: cl_khr_pci_bus_info,
 * cl_khr_device_uuid, cl_nv_device_attribute_query, cl_amd_device_attribute_query. */
enum {
    DEVICE_PCI_BUS_INFO_KHR = 0x410F,
    DEVICE_UUID_KHR = 0x106A,
    DEVICE_PCI_BUS_ID_NV = 0x4008,
    DEVICE_PCI_SLOT_ID_NV = 0x4009,
    DEVICE_PCI_DOMAIN_ID_NV = 0x400A,
    DEVICE_TOPOLOGY_AMD = 0x4037
};

/* ---- facts ---- */

/* As clGetDeviceInfo. Where the driver fails, nothing that it says of the device is to be believed: a missing fact would
 * change what is computed, and how. */
static cl_int ask(clt_found_device *device, cl_device_info what, size_t bytes, void *to, size_t *needed) {
    cl_int error = clGetDeviceInfo(device->id, what, bytes, to, needed);
    char text[64];
    if (clt_cl_is_broken(error))
        snprintf(device->info.unusable, sizeof device->info.unusable, "the driver failed when it was asked for fact 0x%x (%s)",
                 (unsigned)what, clt_cl_error_name(error, text));
    return error;
}

static void query_text(clt_found_device *device, cl_device_info what, char *text, size_t bytes) {
    size_t needed = 0;
    text[0] = 0;
    const size_t most = (size_t)1 << 20; /* what a broken driver asks for may be any number */
    if (ask(device, what, 0, NULL, &needed) != CL_SUCCESS || needed == 0 || needed > most) return;
    char *whole = clt_calloc(needed + 1, 1);
    if (!whole) snprintf(device->info.unusable, sizeof device->info.unusable, "there was no host memory to describe it");
    if (whole && ask(device, what, needed, whole, NULL) == CL_SUCCESS) {
        const char *start = whole;
        while (*start == ' ') start++; /* some CPUs' names begin with blanks */
        if ((size_t)snprintf(text, bytes, "%s", start) >= bytes && bytes > 4) memcpy(text + bytes - 4, "...", 4);
        for (size_t n = strlen(text); n > 0 && text[n - 1] == ' '; n--) text[n - 1] = 0;
    }
    clt_free(whole);
}

static uint64_t query_number(clt_found_device *device, cl_device_info what) {
    uint64_t value = 0; /* of 4 or 8 bytes: little-endian hosts see either right */
    uint32_t narrow = 0;
    size_t bytes = 0;
    if (ask(device, what, 0, NULL, &bytes) != CL_SUCCESS) return 0;
    if (bytes == sizeof narrow) {
        ask(device, what, sizeof narrow, &narrow, NULL);
        return narrow;
    }
    if (bytes == sizeof value) ask(device, what, sizeof value, &value, NULL);
    return value;
}

static clt_device_type type_of(cl_device_type type) {
    type &= CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_ACCELERATOR | CL_DEVICE_TYPE_CPU;
    if (type == CL_DEVICE_TYPE_GPU) return CLT_DEVICE_GPU;
    if (type == CL_DEVICE_TYPE_ACCELERATOR) return CLT_DEVICE_ACCELERATOR;
    if (type == CL_DEVICE_TYPE_CPU) return CLT_DEVICE_CPU;
    return CLT_DEVICE_OTHER; /* a simulator that says it is all of them */
}

static bool pci_address(clt_found_device *device, char *text, size_t bytes) {
    cl_uint khr[4]; /* domain, bus, device, function */
    if (ask(device, DEVICE_PCI_BUS_INFO_KHR, sizeof khr, khr, NULL) == CL_SUCCESS) {
        snprintf(text, bytes, "pci:%04x:%02x:%02x.%x", khr[0], khr[1], khr[2], khr[3]);
        return true;
    }
    cl_uint bus, slot, domain = 0;
    if (ask(device, DEVICE_PCI_BUS_ID_NV, sizeof bus, &bus, NULL) == CL_SUCCESS &&
        ask(device, DEVICE_PCI_SLOT_ID_NV, sizeof slot, &slot, NULL) == CL_SUCCESS) {
        ask(device, DEVICE_PCI_DOMAIN_ID_NV, sizeof domain, &domain, NULL);
        snprintf(text, bytes, "pci:%04x:%02x:%02x.%x", domain, bus, slot >> 3, slot & 7);
        return true;
    }
    unsigned char amd[24]; /* cl_uint type (1 = PCIe); bytes 21 to 23: bus, device, function */
    if (ask(device, DEVICE_TOPOLOGY_AMD, sizeof amd, amd, NULL) == CL_SUCCESS && amd[0] == 1) {
        snprintf(text, bytes, "pci:0000:%02x:%02x.%x", amd[21], amd[22], amd[23]);
        return true;
    }
    return false;
}

static bool uuid_text(clt_found_device *device, char *text, size_t bytes) {
    unsigned char uuid[16], any = 0;
    if (ask(device, DEVICE_UUID_KHR, sizeof uuid, uuid, NULL) != CL_SUCCESS) return false;
    size_t length = (size_t)snprintf(text, bytes, "uuid:");
    for (int i = 0; i < 16; i++) {
        any |= uuid[i];
        length += (size_t)snprintf(text + length, bytes - length, "%02x", uuid[i]);
    }
    return any != 0;
}

/* Lower case, with runs of what is no letter or digit as one dash. */
static void slug(const char *text, char *out, size_t bytes) {
    size_t n = 0;
    for (; *text && n + 1 < bytes; text++) {
        if (isalnum((unsigned char)*text)) out[n++] = (char)tolower((unsigned char)*text);
        else if (n > 0 && out[n - 1] != '-') out[n++] = '-';
    }
    while (n > 0 && out[n - 1] == '-') n--;
    out[n] = 0;
}

static void make_id(clt_found_device *device) {
    char platform[48], name[72];
    if (pci_address(device, device->info.id, sizeof device->info.id)) return;
    if (uuid_text(device, device->info.id, sizeof device->info.id)) return;
    slug(device->info.platform, platform, sizeof platform);
    slug(device->info.name, name, sizeof name);
    snprintf(device->info.id, sizeof device->info.id, "%s/%s", platform, name);
}

/* Two devices of one id (the same silicon through two platforms, or equal CPUs) are numbered. */
static void number_equal_ids(clt_found_device *found, size_t count) {
    for (size_t i = 0; i < count; i++) {
        int number = 1;
        for (size_t k = i + 1; k < count; k++) {
            if (strcmp(found[i].info.id, found[k].info.id)) continue;
            size_t length = strlen(found[k].info.id);
            snprintf(found[k].info.id + length, sizeof found[k].info.id - length, "#%d", ++number);
        }
    }
}

static void describe_unusable(clt_found_device *device) {
    clt_device_info *info = &device->info;
    int major = 0, minor = 0;
    sscanf(info->cl_version, "OpenCL %4d.%4d", &major, &minor);
    bool available = query_number(device, CL_DEVICE_AVAILABLE), little = query_number(device, CL_DEVICE_ENDIAN_LITTLE);
    if (info->unusable[0]) return;
    if (!available)
        snprintf(info->unusable, sizeof info->unusable, "the driver says it is not available");
    else if (major * 10 + minor < 12)
        snprintf(info->unusable, sizeof info->unusable, "it has OpenCL %d.%d; 1.2 is needed", major, minor);
    else if (!little)
        snprintf(info->unusable, sizeof info->unusable, "it is big-endian");
    else if (!info->has_compiler)
        snprintf(info->unusable, sizeof info->unusable, "its driver has no compiler");
    else if (info->compute_units == 0 || info->max_work_group_size == 0)
        snprintf(info->unusable, sizeof info->unusable, "it claims %u compute units and work-groups of %llu", (unsigned)info->compute_units,
                 (unsigned long long)info->max_work_group_size);
    else if (info->memory_bytes == 0 || info->max_buffer_bytes == 0)
        snprintf(info->unusable, sizeof info->unusable, "it claims %llu bytes of memory, %llu in a buffer",
                 (unsigned long long)info->memory_bytes, (unsigned long long)info->max_buffer_bytes);
}

static void describe(clt_found_device *device, const char *platform) {
    clt_device_info *info = &device->info;
    snprintf(info->platform, sizeof info->platform, "%s", platform);
    query_text(device, CL_DEVICE_NAME, info->name, sizeof info->name);
    query_text(device, CL_DEVICE_VENDOR, info->vendor, sizeof info->vendor);
    query_text(device, CL_DRIVER_VERSION, info->driver, sizeof info->driver);
    query_text(device, CL_DEVICE_VERSION, info->cl_version, sizeof info->cl_version);
    info->type = type_of(query_number(device, CL_DEVICE_TYPE));
    info->compute_units = (uint32_t)query_number(device, CL_DEVICE_MAX_COMPUTE_UNITS);
    info->clock_mhz = (uint32_t)query_number(device, CL_DEVICE_MAX_CLOCK_FREQUENCY);
    info->memory_bytes = query_number(device, CL_DEVICE_GLOBAL_MEM_SIZE);
    info->max_buffer_bytes = query_number(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
    info->local_memory_bytes = query_number(device, CL_DEVICE_LOCAL_MEM_SIZE);
    info->max_work_group_size = query_number(device, CL_DEVICE_MAX_WORK_GROUP_SIZE);
    info->unified_memory = query_number(device, CL_DEVICE_HOST_UNIFIED_MEMORY) != 0;
    info->has_compiler = query_number(device, CL_DEVICE_COMPILER_AVAILABLE) != 0;
    make_id(device);
    describe_unusable(device);
}

/* ---- enumeration ---- */

static clt_status find_on_platform(cl_platform_id platform, clt_found_device **found, size_t *count,
                                   size_t *capacity) {
    enum { MOST = 256 };
    cl_device_id ids[MOST] = {0};
    cl_uint n = 0;
    char name[256] = "", text[64];
    cl_int unnamed = clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof name, name, NULL);
    name[unnamed == CL_SUCCESS ? sizeof name - 1 : 0] = 0;
    /* A platform without devices, or one that is broken, does not hide the others. */
    cl_int error = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, MOST, ids, &n);
    if (error != CL_SUCCESS && error != CL_DEVICE_NOT_FOUND)
        clt_log_message(CLT_LOG_WARNING, "platform %s: its devices cannot be listed: %s", name,
                        clt_cl_error_name(error, text));
    if (error != CL_SUCCESS) return CLT_OK;
    for (cl_uint i = 0; i < n && i < MOST; i++) {
        if (!ids[i]) continue;
        CLT_TRY(clt_grow(found, capacity, *count, sizeof **found));
        clt_found_device *device = &(*found)[(*count)++];
        *device = (clt_found_device){.platform = platform, .id = ids[i]};
        if (clt_cl_is_broken(unnamed))
            snprintf(device->info.unusable, sizeof device->info.unusable, "the driver failed when it was asked for its name (%s)",
                     clt_cl_error_name(unnamed, text));
        describe(device, name);
    }
    return CLT_OK;
}

static clt_status find_all(clt_found_device **found, size_t *count) {
    enum { MOST = 64 };
    cl_platform_id platforms[MOST];
    cl_uint n = 0;
    size_t capacity = 0;
    char text[64];
    *found = NULL;
    *count = 0;
    cl_int error = clGetPlatformIDs(MOST, platforms, &n);
    if (error != CL_SUCCESS || n == 0) {
        clt_fail(CLT_E_NO_DEVICE,
                 "the OpenCL loader found no platform (%s): no driver (ICD) is installed, or "
                 "OCL_ICD_VENDORS points elsewhere",
                 clt_cl_error_name(error, text));
        return CLT_OK;
    }
    for (cl_uint i = 0; i < n && i < MOST; i++) {
        bool again = false; /* loaders may list a driver twice that the environment names in two ways */
        for (cl_uint k = 0; k < i; k++) again |= platforms[k] == platforms[i];
        if (again) continue;
        clt_status status = find_on_platform(platforms[i], found, count, &capacity);
        if (status < 0) {
            clt_free(*found);
            return status;
        }
    }
    if (*count == 0)
        clt_fail(CLT_E_NO_DEVICE, n == 1 ? "%u OpenCL platform is installed, but it has no device"
                                         : "%u OpenCL platforms are installed, but none has a device", (unsigned)n);
    number_equal_ids(*found, *count);
    return CLT_OK;
}

/* Loaders and drivers begin with the first question, and not all of them bear that two threads ask it at once. */
static clt_mutex finding = PTHREAD_MUTEX_INITIALIZER;

clt_status clt_devices_find(clt_found_device **found, size_t *count) {
    clt_mutex_lock(&finding);
    clt_status status = find_all(found, count);
    clt_mutex_unlock(&finding);
    return status;
}

clt_status clt_device_enumerate(clt_device_info **infos, size_t *count) {
    if (!infos || !count) return clt_fail(CLT_E_INVALID, "clt_device_enumerate: an argument is NULL");
    clt_found_device *found;
    CLT_TRY(clt_devices_find(&found, count));
    *infos = clt_calloc(*count + 1, sizeof **infos);
    for (size_t i = 0; *infos && i < *count; i++) (*infos)[i] = found[i].info;
    clt_free(found);
    return *infos ? CLT_OK : clt_fail_memory(*count * sizeof **infos);
}

clt_status clt_device_select(const clt_device_info *infos, size_t count, const char *selector, size_t *chosen) {
    char reason[256];
    if ((!infos && count) || !chosen) return clt_fail(CLT_E_INVALID, "clt_device_select: an argument is NULL");
    if (count == 0) return clt_fail(CLT_E_NO_DEVICE, "there is no device to choose from");
    clt_found_device *found = clt_calloc(count, sizeof *found);
    if (!found) return clt_fail_memory(count * sizeof *found);
    for (size_t i = 0; i < count; i++) found[i].info = infos[i];
    clt_status status = clt_devices_select(found, count, clt_settings_selector(selector), chosen, reason);
    clt_free(found);
    return status;
}

void clt_device_infos_free(clt_device_info *infos) {
    clt_free(infos);
}

/* ---- selection ---- */

/* GPU before accelerator before CPU before others, then more compute units x clock. */
static bool preferred(const clt_device_info *a, const clt_device_info *b) {
    if (a->type != b->type) return a->type < b->type;
    return (uint64_t)a->compute_units * CLT_MAX(a->clock_mhz, 1u) >
           (uint64_t)b->compute_units * CLT_MAX(b->clock_mhz, 1u);
}

static clt_status fail_selection(const clt_found_device *found, size_t count, const char *selector,
                                 const char *why) {
    clt_text text = {0};
    for (size_t i = 0; i < count; i++)
        clt_text_add(&text, "\n  %zu: %s (%s) [%s]%s%s", i, found[i].info.name, found[i].info.platform,
                     found[i].info.id, found[i].info.unusable[0] ? ": unusable: " : "", found[i].info.unusable);
    clt_fail(CLT_E_NO_DEVICE, "device \"%s\" %s; present are:%s", selector, why, clt_text_data(&text));
    clt_text_free(&text);
    return CLT_E_NO_DEVICE;
}

static const char *const type_names[] = {"gpu", "accelerator", "cpu"};

static bool matches(const clt_device_info *info, const char *selector) {
    for (size_t t = 0; t < CLT_COUNT_OF(type_names); t++)
        if (!strcmp(selector, type_names[t])) return info->type == (clt_device_type)t;
    return clt_text_contains(info->id, selector) || clt_text_contains(info->name, selector) ||
           clt_text_contains(info->vendor, selector) || clt_text_contains(info->platform, selector) ||
           clt_text_contains(info->cl_version, selector);
}

static bool names_type(const char *selector) {
    for (size_t t = 0; t < CLT_COUNT_OF(type_names); t++)
        if (!strcmp(selector, type_names[t])) return true;
    return false;
}

static clt_status select_index(const clt_found_device *found, size_t count, const char *selector,
                               size_t *chosen) {
    char *end;
    unsigned long index = strtoul(selector, &end, 10);
    if (*end || index >= count) return fail_selection(found, count, selector, "is not an index of a device");
    *chosen = index;
    return CLT_OK;
}

static clt_status select_match(const clt_found_device *found, size_t count, const char *selector,
                               size_t *chosen) {
    size_t matching = 0;
    for (size_t i = 0; i < count; i++) {
        if (!strcmp(found[i].info.id, selector)) {
            *chosen = i;
            return CLT_OK;
        }
        if (!matches(&found[i].info, selector)) continue;
        if (matching == 0 || (names_type(selector) && preferred(&found[i].info, &found[*chosen].info))) *chosen = i;
        matching++;
    }
    if (matching == 0) return fail_selection(found, count, selector, "matches none");
    if (matching > 1 && !names_type(selector)) return fail_selection(found, count, selector, "matches several");
    return CLT_OK;
}

static clt_status select_best(const clt_found_device *found, size_t count, size_t *chosen) {
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        if (found[i].info.unusable[0]) continue;
        if (!any || preferred(&found[i].info, &found[*chosen].info)) *chosen = i;
        any = true;
    }
    return any ? CLT_OK : fail_selection(found, count, "", "(none asked for) finds none that is usable");
}

clt_status clt_devices_select(const clt_found_device *found, size_t count, const char *selector,
                              size_t *chosen, char reason[256]) {
    if (count == 0) return CLT_E_NO_DEVICE; /* the detail is clt_devices_find's */
    if (!selector[0]) {
        CLT_TRY(select_best(found, count, chosen));
        snprintf(reason, 256, "the fastest class of %zu devices", count);
    } else {
        if (isdigit((unsigned char)selector[0]) && strspn(selector, "0123456789") == strlen(selector))
            CLT_TRY(select_index(found, count, selector, chosen));
        else
            CLT_TRY(select_match(found, count, selector, chosen));
        snprintf(reason, 256, "asked for as \"%.200s\"", selector);
    }
    const clt_device_info *info = &found[*chosen].info;
    if (info->unusable[0])
        return clt_fail(CLT_E_NO_DEVICE, "%s (%s) cannot be used: %s", info->name, info->id, info->unusable);
    return CLT_OK;
}
