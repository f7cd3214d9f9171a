// What a worker computes with, and how a job's text becomes that.
#pragma once
#include <optional>
#include <string>

#include "base/result.h"
#include "cluster/spec.h"
#include "runtime/server_process.h"
#include "runtime/stage_process.h"
#include "runtime/worker_process.h"

namespace motley::engine {

/// What the user said with --device.
struct DeviceChoice {
  cluster::DeviceKind kind{};
  int number = 0;                 // cpu: threads (0: one), cuda: which
  double samples_per_second = 0;  // emulated
};
/// "cpu", "cpu:4", "cuda:0", "emulated:250".
Result<DeviceChoice> parse_device(const std::string& text);

/// Reads the job, loads its data, makes its model. `name` is that of a node of the job, or a stranger's; `chosen` goes before what the job
/// says.
Result<runtime::WorkerSetup> prepare_worker(const std::string& job_text, const std::string& name,
                                            const std::optional<DeviceChoice>& chosen);

/// The same for a server of a cluster with several.
Result<runtime::ServerSetup> prepare_server(const std::string& job_text);

/// The same for a stage of a pipeline: `name` must be that of a node of the job.
Result<runtime::StageSetup> prepare_stage(const std::string& job_text, const std::string& name);

}  // namespace motley::engine
