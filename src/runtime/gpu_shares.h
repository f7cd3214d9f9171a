// One GPU as several unlike ones: NVIDIA's multi-process service lets processes compute on it side by side, each on a part of its
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

/// True when nodes of this cluster are to have parts of a GPU.
[[nodiscard]] bool shares_gpus(const cluster::Spec& cluster);

/// The service, for as long as this lives; its files are in a folder of their own.
class GpuShares {
 public:
  /// Nothing to start when somebody has said where one is (CUDA_MPS_PIPE_DIRECTORY). Fails where NVIDIA's tools are not.
  static Result<std::unique_ptr<GpuShares>> start();
  ~GpuShares();
  GpuShares(const GpuShares&) = delete;
  GpuShares& operator=(const GpuShares&) = delete;

  using Environment = std::vector<std::pair<std::string, std::string>>;
  /// For a process that may use so much of the GPU; 0: all of it.
  [[nodiscard]] Environment environment(int percent) const;

 private:
  GpuShares() = default;
  boost::asio::io_context event_loop_;
  TemporaryFolder folder_;  // none: somebody else's
  std::unique_ptr<runtime::Child> service_;
  bool ended_ = false;
};

}  // namespace motley::runtime
