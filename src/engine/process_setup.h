// Makes from the text of a job what a worker, server or stage process needs.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "cluster/spec.h"
#include "runtime/server_process.h"
#include "runtime/stage_process.h"
#include "runtime/worker_process.h"

namespace motley::engine {

/// The value of --device.
struct DeviceChoice {
  cluster::DeviceKind kind{};
  int number = 0;                 // cpu: threads (0: one), cuda: which
  double samples_per_second = 0;  // emulated
};
/// "cpu", "cpu:4", "cuda:0", "emulated:250".
Result<DeviceChoice> parse_device(const std::string& text);

/// Reads the job, loads its data, makes its model. `name` is that of a node of the job, or of a worker that the job does not list. `chosen`
/// takes precedence over the job's device.
Result<runtime::WorkerSetup> prepare_worker(const std::string& job_text, const std::string& name,
                                            const std::optional<DeviceChoice>& chosen);

/// Gradients that a program computes itself, for a job with model.kind "none".
struct ProgramSource {
  std::unique_ptr<GradientSource> source;
  std::uint64_t values = 0;   // parameters of its model
  std::uint64_t samples = 0;  // of its training set
};
/// Refuses a job with a model of its own, and a program whose model or training set has another size than the chief's.
Result<runtime::WorkerSetup> prepare_worker(const std::string& job_text, const std::string& name, ProgramSource program);

/// The same for a server of a cluster with several.
Result<runtime::ServerSetup> prepare_server(const std::string& job_text);

/// The same for a stage of a pipeline: `name` must be that of a node of the job.
Result<runtime::StageSetup> prepare_stage(const std::string& job_text, const std::string& name);

}  // namespace motley::engine
