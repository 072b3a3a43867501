/*
 * An ONNX file with what lies beside it: the model, and its tensors' data wherever they are.
 */
#ifndef CLT_EXCHANGE_ONNX_FILE_H
#define CLT_EXCHANGE_ONNX_FILE_H

#include "runtime/base/file.h"
#include "runtime/exchange/onnx/model.h"

/* A file of external data, opened when its first tensor is read. */
typedef struct clt_onnx_data_file {
    char *location, *path; /* as the model names it; where it is */
    clt_file_view view;
} clt_onnx_data_file;

typedef struct clt_onnx_file {
    char *path;
    clt_file_view view;
    clt_onnx_model model;
    clt_onnx_data_file *data_files;
    size_t n_data_files, capacity;
} clt_onnx_file;

/* Reads the model; of the weights nothing is read. CLT_E_IO, CLT_E_FORMAT, CLT_E_RANGE, CLT_E_NO_MEMORY, with the path. One thread at
 * a time for each file; to be closed also after an error. */
clt_status clt_onnx_file_open(clt_onnx_file *file, const char *path);
void clt_onnx_file_close(clt_onnx_file *file);

/* The same of a file that holds a tensor alone, as those of ONNX's test cases do. */
clt_status clt_onnx_file_open_tensor(clt_onnx_file *file, const char *path, clt_onnx_tensor *tensor);

/* Opens all files of external data. */
clt_status clt_onnx_open_all(clt_onnx_file *file);

/* The number of a tensor's field that has values of a type, where they are not raw; *written: how each is written there. */
uint32_t clt_onnx_typed_field(int64_t type, clt_wire_type *written);

/* Whether a tensor's data can be as long as its shape says, before memory is taken for them: CLT_E_FORMAT where not. CLT_E_IO. */
clt_status clt_onnx_data_check(clt_onnx_file *file, const clt_onnx_tensor *tensor);

/* Elements `first` to `first + count` of a tensor of the model, as its type has them (little-endian, INT64 8 bytes each, BOOL one).
 * CLT_E_FORMAT with the tensor's name: there are fewer bytes than its shape needs, or more, or data of two kinds; CLT_E_UNSUPPORTED: texts,
 * and types without whole bytes; CLT_E_IO. */
clt_status clt_onnx_data_read(clt_onnx_file *file, const clt_onnx_tensor *tensor, int64_t first, int64_t count, void *to);

#endif
