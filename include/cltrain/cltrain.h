/*
 * cltrain: training neural networks on any OpenCL device.
 *
 *     clt_device  devices of every OpenCL platform         cltrain/device.h
 *     clt_graph   the model, its inputs and parameters     cltrain/graph.h, ops.h
 *     clt_dataset, clt_loader   data, batches              cltrain/data.h
 *     clt_trainer               steps, metrics, checkpoints   cltrain/train.h
 *     clt_comm                  the ranks of a job          cltrain/comm.h
 *     clt_profile               where the time goes        cltrain/profile.h
 *     clt_probe, clt_tune       which rows serve, speed    cltrain/probe.h
 *     clt_measure, clt_check    limits of a device          cltrain/measure.h
 *     clt_status                what went wrong            cltrain/status.h
 */
#ifndef CLTRAIN_H
#define CLTRAIN_H

#include <cltrain/allocator.h>
#include <cltrain/comm.h>
#include <cltrain/data.h>
#include <cltrain/device.h>
#include <cltrain/graph.h>
#include <cltrain/log.h>
#include <cltrain/measure.h>
#include <cltrain/ops.h>
#include <cltrain/probe.h>
#include <cltrain/profile.h>
#include <cltrain/status.h>
#include <cltrain/tensor.h>
#include <cltrain/train.h>
#include <cltrain/version.h>

#endif
