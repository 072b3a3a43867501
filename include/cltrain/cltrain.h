/*
 * cltrain: training neural networks on any OpenCL device.
 *
 *     clt_device                devices of every OpenCL platform     cltrain/device.h
 *     clt_graph                 the model, its inputs and parameters cltrain/graph.h, ops.h
 *     clt_model_*               networks that are known by name      cltrain/models.h
 *     clt_graph_add_lora        low-rank adapters, for fine-tuning   cltrain/lora.h
 *     clt_tokenizer             text to token ids and back           cltrain/text.h
 *     clt_dataset, clt_loader   data, batches                        cltrain/data.h
 *     clt_trainer               steps, metrics, checkpoints          cltrain/train.h
 *     clt_predictor             prediction alone                     cltrain/predictor.h
 *     clt_evaluator             metrics of predictions               cltrain/metrics.h
 *     clt_events                what TensorBoard shows               cltrain/events.h
 *     clt_comm                  the ranks of a job                   cltrain/comm.h
 *     clt_status                what went wrong                      cltrain/status.h
 *
 * Structs of options are the caller's: a field that is zero has its default, and numbers for which zero is not the default take CLT_ZERO. Fields are
 * added in minor releases alone, which have another SONAME (libcltrain.so.0.1, .0.2): a program is compiled again for these, and
 * its source stays as it is where it names the fields that it sets.
 *
 * Headers in cltrain/experimental may change in any release:
 *
 *     clt_profile               where the time goes                  cltrain/experimental/profile.h
 *     clt_probe, clt_tune       which kernels serve an op, tuning    cltrain/experimental/probe.h
 *     clt_trial                 single ops and graphs, tried         cltrain/experimental/trial.h
 *     clt_times, clt_predict    a step's time and memory, predicted  cltrain/experimental/predict.h
 *     clt_simulate              a pipeline's step, simulated         cltrain/experimental/simulate.h
 *     clt_measure, clt_check    limits of a device                   cltrain/experimental/measure.h
 *     clt_bundle                kernels that are compiled ahead      cltrain/experimental/bundle.h
 */
#ifndef CLTRAIN_H
#define CLTRAIN_H

#include <cltrain/allocator.h>
#include <cltrain/comm.h>
#include <cltrain/data.h>
#include <cltrain/device.h>
#include <cltrain/events.h>
#include <cltrain/experimental/bundle.h>
#include <cltrain/experimental/measure.h>
#include <cltrain/experimental/predict.h>
#include <cltrain/experimental/probe.h>
#include <cltrain/experimental/profile.h>
#include <cltrain/experimental/simulate.h>
#include <cltrain/experimental/trial.h>
#include <cltrain/graph.h>
#include <cltrain/log.h>
#include <cltrain/lora.h>
#include <cltrain/metrics.h>
#include <cltrain/models.h>
#include <cltrain/onnx.h>
#include <cltrain/ops.h>
#include <cltrain/pipeline.h>
#include <cltrain/predictor.h>
#include <cltrain/preprocessing.h>
#include <cltrain/settings.h>
#include <cltrain/status.h>
#include <cltrain/tensor.h>
#include <cltrain/text.h>
#include <cltrain/train.h>
#include <cltrain/version.h>

#endif
