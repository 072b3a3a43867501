/*
 * Status codes and the detail of the last error.
 *
 * Every function that can fail returns a clt_status: CLT_OK (zero), a positive
 * notice (CLT_END), or a negative error. The library never prints, aborts or
 * exits. Next to the code it leaves a sentence for people, which names the
 * thing that was wrong: clt_error_detail().
 *
 * Values are never renumbered within a major version.
 */
#ifndef CLTRAIN_STATUS_H
#define CLTRAIN_STATUS_H

#include <cltrain/export.h>

CLT_BEGIN_DECLS

/* X(name, value, what clt_status_message() says) */
#define CLT_STATUS_MAP(X)                                                        \
    X(CLT_OK, 0, "success")                                                      \
    X(CLT_END, 1, "no more batches in this epoch")                               \
    X(CLT_E_INVALID, -1, "invalid argument")                                     \
    X(CLT_E_NO_MEMORY, -2, "out of host memory")                                 \
    X(CLT_E_IO, -3, "a file could not be read or written")                       \
    X(CLT_E_FORMAT, -4, "a file or text is malformed")                           \
    X(CLT_E_SHAPE, -5, "shapes do not fit")                                      \
    X(CLT_E_DTYPE, -6, "data types do not fit")                                  \
    X(CLT_E_NOT_FOUND, -7, "no such thing")                                      \
    X(CLT_E_NO_DEVICE, -8, "no OpenCL device fits")                              \
    X(CLT_E_DEVICE, -9, "an OpenCL call failed")                                 \
    X(CLT_E_DEVICE_MEMORY, -10, "out of device memory")                          \
    X(CLT_E_BUILD, -11, "a kernel did not build")                                \
    X(CLT_E_UNSUPPORTED, -12, "not supported by this device or library version") \
    X(CLT_E_MISMATCH, -13, "a checkpoint belongs to another model")              \
    X(CLT_E_STATE, -14, "called in the wrong order")                             \
    X(CLT_E_RANGE, -15, "a value is out of range")                               \
    X(CLT_E_SYSTEM, -16, "an operating system call failed")                      \
    X(CLT_E_NETWORK, -17, "the network failed")                                  \
    X(CLT_E_TIMEOUT, -18, "a deadline passed")                                   \
    X(CLT_E_DENIED, -19, "the other end could not prove that it belongs here")   \
    X(CLT_E_PEER, -20, "another rank was lost or failed")                        \
    X(CLT_E_ABORTED, -21, "aborted")                                             \
    X(CLT_E_FENCED, -22, "the group went on without this rank")                  \
    X(CLT_E_DEVICE_LOST, -23, "a device was lost, or hangs")                     \
    X(CLT_E_NONFINITE, -24, "gradients are NaN or infinite")

typedef enum clt_status {
#define CLT_STATUS_ENUM_(name, value, message) name = value,
    CLT_STATUS_MAP(CLT_STATUS_ENUM_)
#undef CLT_STATUS_ENUM_
} clt_status;

/* The name of a code, such as "CLT_E_SHAPE"; "unknown status" for others.
 * Static storage; any thread. */
CLT_API const char *clt_status_name(clt_status status);

/* A short sentence for a code, such as "shapes do not fit". Static storage; any thread. */
CLT_API const char *clt_status_message(clt_status status);

/* What exactly went wrong in the last call on this thread that failed: the file
 * and line, the tensors and their shapes, the device, the kernel and the end of
 * its build log. Never NULL; "" if nothing failed yet on this thread. Valid
 * until the next failing call on this thread. */
CLT_API const char *clt_error_detail(void);

CLT_END_DECLS

#endif
