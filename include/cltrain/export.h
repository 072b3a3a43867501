/* Visibility and linkage of the public symbols. */
#ifndef CLTRAIN_EXPORT_H
#define CLTRAIN_EXPORT_H

#if defined(__GNUC__)
#define CLT_API __attribute__((visibility("default")))
#define CLT_PRINTF(format_index, first_argument) \
    __attribute__((format(printf, format_index, first_argument)))
#else
#define CLT_API
#define CLT_PRINTF(format_index, first_argument)
#endif

#ifdef __cplusplus
#define CLT_BEGIN_DECLS extern "C" {
#define CLT_END_DECLS }
#else
#define CLT_BEGIN_DECLS
#define CLT_END_DECLS
#endif

#endif
