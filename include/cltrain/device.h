/*
 * OpenCL devices: what is there, and opening one.
 *
 * All platforms of the ICD loader are looked at, in one process.
 *
 * A selector names a device:
 *   NULL or ""        CLTRAIN_DEVICE from the environment if set; else the
 *                     fastest class present: GPU, then accelerator, then CPU;
 *                     in a class more compute units x clock first
 *   "2"               the index in clt_device_enumerate's order
 *   "cpu" "gpu" "accelerator"   the first of that type, in order of preference
 *   "pci:0000:03:00.0"          PCI address, where the driver tells it
 *   "uuid:8f3a…"                UUID, where the driver tells it
 *   "pocl"            anything else: a fragment of id, name, vendor, platform or
 *                     OpenCL version, upper or lower case; must match one device only,
 *                     or be the exact id of one
 *
 * There is no silent fallback: a selector that matches nothing is an error that
 * lists the devices present.
 */
#ifndef CLTRAIN_DEVICE_H
#define CLTRAIN_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cltrain/export.h>
#include <cltrain/settings.h>
#include <cltrain/status.h>

CLT_BEGIN_DECLS

/* One device with its own queue, buffer pool and program cache. A device and
 * everything made on it is to be used by one thread at a time; different
 * devices may be used by different threads at once. */
typedef struct clt_device clt_device;

typedef enum clt_device_type {
    CLT_DEVICE_GPU = 0,
    CLT_DEVICE_ACCELERATOR = 1,
    CLT_DEVICE_CPU = 2,
    CLT_DEVICE_OTHER = 3
} clt_device_type;

typedef struct clt_device_info {
    char id[128];       /* stable: pci:…, uuid:…, or platform/name with a number */
    char name[256];     /* CL_DEVICE_NAME */
    char vendor[256];   /* CL_DEVICE_VENDOR */
    char platform[256]; /* CL_PLATFORM_NAME */
    char driver[128];   /* CL_DRIVER_VERSION */
    char cl_version[128];
    clt_device_type type;
    uint32_t compute_units;
    uint32_t clock_mhz; /* 0 where the driver does not tell */
    uint64_t memory_bytes;
    uint64_t max_buffer_bytes; /* largest single OpenCL buffer */
    uint64_t local_memory_bytes;
    uint64_t max_work_group_size;
    bool unified_memory; /* host and device share memory */
    bool has_compiler;   /* false: kernels only from offline binaries */
    char unusable[256];  /* why the device cannot be opened; "" if it can */
} clt_device_info;

/* Lists the devices of all platforms into a new array. *infos is released with
 * clt_device_infos_free. With no platform or no device: CLT_OK and *count = 0,
 * and clt_error_detail() tells why. */
CLT_API clt_status clt_device_enumerate(clt_device_info **infos, size_t *count);
CLT_API void clt_device_infos_free(clt_device_info *infos);
/* The one of them that a selector names, as clt_device_open would choose. CLT_E_NO_DEVICE as there. */
CLT_API clt_status clt_device_select(const clt_device_info *infos, size_t count, const char *selector,
                                     size_t *chosen);

/* Opens a device. The choice and its reason are logged at level info. Errors:
 * CLT_E_NO_DEVICE (nothing there, nothing matches, or several match),
 * CLT_E_DEVICE. Close it with clt_device_close after everything made on it. */
CLT_API clt_status clt_device_open(clt_device **device, const char *selector);
/* The same with settings in C (cltrain/settings.h), which are copied; `settings` may be NULL. CLT_E_INVALID names the invalid setting or variable,
 * and what was expected. Any thread may call it, while no other changes the environment. */
CLT_API clt_status clt_device_open_with(clt_device **device, const clt_settings *settings);

/* Waits for work under way, saves what the program cache has not yet, and frees the device. A
 * program that ends without this may have to build its kernels anew in the next run. NULL is fine. */
CLT_API void clt_device_close(clt_device *device);

/* For a device that may hang: waits for it return CLT_E_DEVICE_LOST when no kernel has finished for so many seconds, and say
 * which launch did not. They do so too when a launch failed after the driver had taken it: its event tells, and without a
 * timeout nobody asks for it. 0: they wait for as long as it takes, the default unless
 * settings.timeout_seconds, or CLTRAIN_DEVICE_TIMEOUT in the environment, names a time.
 * A time must be longer than any single kernel takes: that is minutes on a simulator. With a timeout each launch costs an event.
 *
 * Once a device is lost, by this or by an error of the driver that says so, all calls on it and what was made on it fail at
 * once with CLT_E_DEVICE_LOST and the words that tell why; destroying and closing work as always, and do not wait. What a
 * device that hangs had is left to the driver. */
CLT_API clt_status clt_device_set_timeout(clt_device *device, double seconds);

/* Facts of an open device; valid as long as it is open. */
CLT_API const clt_device_info *clt_device_get_info(const clt_device *device);

/* What a device can do beyond OpenCL 1.2, found by building and running a small
 * kernel (extension strings lie both ways) and remembered on disk per device and
 * driver. settings.capabilities_off, or CLTRAIN_CAPS_OFF=fp16,subgroups in the environment, masks some. */
typedef enum clt_capability {
    CLT_CAP_FP16 = 0,      /* half arithmetic */
    CLT_CAP_FP64 = 1,      /* double arithmetic */
    CLT_CAP_SUBGROUPS = 2, /* sub_group_reduce_add */
    CLT_CAP_GROUPS = 3,    /* work-groups of 256 that a kernel fixes, which exchange through local memory */
    /* Matrix units, f32 sums of products in lower precision: what CLTRAIN_MATMUL_PRECISION may use. */
    CLT_CAP_MMA_TF32 = 4, /* NVIDIA, mma.sync in inline PTX */
    CLT_CAP_MMA_F16 = 5,
    CLT_CAP_MMA_BF16 = 6,
    CLT_CAP_DPAS8_F16 = 7, /* Intel, matrix_mad by sub-groups of 8, of 16 */
    CLT_CAP_DPAS8_BF16 = 8,
    CLT_CAP_DPAS16_TF32 = 9,
    CLT_CAP_DPAS16_F16 = 10,
    CLT_CAP_DPAS16_BF16 = 11,
    CLT_CAP_WMMA_F16 = 12, /* AMD RDNA 3 */
    CLT_CAP_WMMA_BF16 = 13,
    CLT_CAP_MFMA_F16 = 14, /* AMD CDNA */
    CLT_CAP_MFMA_BF16 = 15,
    CLT_CAP_BF16_STORAGE = 16, /* values kept as the upper half of a float, rounded to even by the kernel */
    CLT_CAP_LONG_LOOPS = 17,   /* a work-item's loops make more than 65535 rounds */
    CLT_CAP_COUNT_ = 18
} clt_capability;

CLT_API const char *clt_capability_name(clt_capability capability);

/* True if the device passes the test of that capability and it is not masked.
 * The first question may take a kernel build. */
CLT_API bool clt_device_has(clt_device *device, clt_capability capability);
/* Why the device has it not, in words of the library's that stay; NULL where it has it. */
CLT_API const char *clt_device_lacks(clt_device *device, clt_capability capability);

/* What a device can do at most, measured: single precision operations a second of multiply-adds from
 * registers (two each), and bytes a second of a copy between buffers larger than its caches, those read
 * and those written. What a kernel reaches is told as a part of these. */
typedef struct clt_peaks {
    double fma_flops;
    double copy_bytes;
} clt_peaks;

/* Measures the peaks, best of several launches, for the first three times; then gives the best of those, which
 * is remembered on disk for this device and driver (`peaks` in the cache's folder). The first time takes a
 * second, most of it to build three kernels, the next two a quarter.
 * Errors: CLT_E_BUILD, CLT_E_DEVICE (also where a kernel computed something wrong), CLT_E_DEVICE_MEMORY. */
CLT_API clt_status clt_device_peaks(clt_device *device, clt_peaks *peaks);

/* Bytes in buffers at present, and the most there ever were. Held by the pool
 * for reuse counts as present. */
CLT_API uint64_t clt_device_bytes(const clt_device *device);
CLT_API uint64_t clt_device_peak_bytes(const clt_device *device);

CLT_END_DECLS

#endif
