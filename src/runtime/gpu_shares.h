// Shares of one GPU: NVIDIA's multi-process service (MPS) lets processes compute on it at the same time, each on a part of its
// multiprocessors.
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

/// Whether any node of this cluster has a share of a GPU.
[[nodiscard]] bool shares_gpus(const cluster::Spec& cluster);

/// Runs the service while it lives; the service's files are in a temporary folder.
class GpuShares {
 public:
  /// Starts nothing when CUDA_MPS_PIPE_DIRECTORY names a running service. Fails where NVIDIA's tools are not installed.
  static Result<std::unique_ptr<GpuShares>> start();
  ~GpuShares();
  GpuShares(const GpuShares&) = delete;
  GpuShares& operator=(const GpuShares&) = delete;

  using Environment = std::vector<std::pair<std::string, std::string>>;
  /// Of a process that may use `percent` of the GPU; 0: all of it.
  [[nodiscard]] Environment environment(int percent) const;

 private:
  GpuShares() = default;
  boost::asio::io_context event_loop_;
  TemporaryFolder folder_;  // none: the service was running before
  std::unique_ptr<runtime::Child> service_;
  bool ended_ = false;
};

}  // namespace motley::runtime
