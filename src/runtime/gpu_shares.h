// Runs several workers on one GPU as devices of different speeds: NVIDIA's multi-process service (MPS) lets processes compute concurrently,
// each on a part of the multiprocessors.
#pragma once
#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cluster/spec.h"
#include "runtime/child.h"
#include "runtime/temporary_folder.h"

namespace motley::runtime {

/// Whether nodes of this cluster use parts of a GPU.
[[nodiscard]] bool shares_gpus(const cluster::Spec& cluster);

/// Owns the MPS control process and its temporary folder.
class GpuShares {
 public:
  /// Starts nothing if CUDA_MPS_PIPE_DIRECTORY names a running service. Fails if NVIDIA's tools are not installed.
  static Result<std::unique_ptr<GpuShares>> start();
  ~GpuShares();
  GpuShares(const GpuShares&) = delete;
  GpuShares& operator=(const GpuShares&) = delete;

  using Environment = std::vector<std::pair<std::string, std::string>>;
  /// For a process that may use this percentage of the GPU; 0: all of it.
  [[nodiscard]] Environment environment(int percent) const;

 private:
  GpuShares() = default;
  boost::asio::io_context event_loop_;
  TemporaryFolder folder_;  // none: the service is not ours
  std::unique_ptr<runtime::Child> service_;
  bool ended_ = false;
};

}  // namespace motley::runtime
