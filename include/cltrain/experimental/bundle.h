/*
 * Bundles: the compiled kernels of a program that uses cltrain, in a folder, for machines whose driver has no compiler, or is not to be waited for.
 *
 * A bundle is made where a compiler is: the device is opened, clt_bundle_begin is called, all is done once that is to be done later (a step of
 * training, a test), and clt_bundle_write writes what was compiled for it. Devices that are opened with the setting `bundle` load it; with `compiler`
 * "never" they compile nothing else, and a kernel that is not in it is an error that names all that are missing.
 *
 * A bundle has:
 *   manifest.json         format, version of the library, and its images: file, SHA-256, the device, platform, driver and compiler options that each
 *                         is for, its kernels with their numbers of arguments, and which of the library's sources they are of
 *   manifest.json.sha256  SHA-256 of that, as sha256sum writes it
 *   KEY.bin, KEY.cl       an image as the driver gave it, and its source, by whose hash they are named
 *   KEY.HASH.spv          that source in SPIR-V (clt_bundle_add_il); HASH: of its bytes
 *   capability-NAME.cl    an experiment that tells whether a device has a capability; .HASH.spv: that in SPIR-V
 *
 * An image serves the device, platform and driver version that it is for; its SPIR-V others, which find out by the experiments what they have. Before it is believed, all of the above is compared, each kernel is made
 * and counted for arguments, and a kernel of each image is launched whose result tells which source it is of.
 *
 * Experimental: what is declared here may change in any release.
 */
#ifndef CLTRAIN_BUNDLE_H
#define CLTRAIN_BUNDLE_H

#include <cltrain/device.h>
#include <cltrain/export.h>
#include <cltrain/status.h>

CLT_BEGIN_DECLS

/* From now on the device keeps the sources of what it builds. To be called before anything is built: CLT_E_STATE after that. */
CLT_API clt_status clt_bundle_begin(clt_device *device);

/* Writes everything that was built since clt_bundle_begin into the folder, which is made where it is missing; what is in it stays
 * beside the new bundle, whose manifest takes the place of an old one. CLT_E_STATE: nothing was built, or clt_bundle_begin was not called; CLT_E_BUILD; CLT_E_UNSUPPORTED: the driver
 * gives no binaries; CLT_E_IO. */
CLT_API clt_status clt_bundle_write(clt_device *device, const char *folder);

/* Compiles the OpenCL C of the file `source` into SPIR-V, which it writes to the file `output`. An error ends what is done. */
typedef clt_status clt_bundle_compile(const char *source, const char *output, void *user);

/* Gives a bundle portable images beside its own: each of its sources is compiled, and devices of any kind whose driver has cl_khr_il_program load that, where the bundle has no image
 * for them. `command` is kept in the manifest, for people. CLT_E_FORMAT, CLT_E_IO: it is no bundle, or is damaged; errors of `compile`. The bundle is as it was then, but for files that
 * nothing names. */
CLT_API clt_status clt_bundle_add_il(const char *folder, const char *command, clt_bundle_compile *compile, void *user);

CLT_END_DECLS

#endif
