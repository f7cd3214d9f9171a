// The job as a worker process needs it, made from the job's text.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "cluster/spec.h"
#include "runtime/step_executor.h"
#include "transport/options.h"
#include "wire/message.h"

namespace motley::runtime {

struct WorkerSetup {
  StepExecutorSetup step_executor;
  cluster::Spec cluster;
  std::optional<NodeId> node;  // its links are emulated; none: they are real
  std::uint32_t node_index = wire::no_node_index;
  std::uint32_t max_batch = 0;
  transport::JobHash job{};
};
using PrepareWorker = std::function<Result<WorkerSetup>(const std::string& job)>;

}  // namespace motley::runtime
