#include "runtime/gpu_shares.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>

namespace motley::runtime {
namespace {

namespace fs = std::filesystem;
constexpr const char* program = "nvidia-cuda-mps-control";
constexpr const char* pipe_directory = "CUDA_MPS_PIPE_DIRECTORY";

/// The full path of `program`, searched in PATH; empty: not installed.
std::string find_program() {
  const char* path = std::getenv("PATH");
  std::string folders = path == nullptr ? "/usr/bin" : path;
  for (std::size_t first = 0; first <= folders.size();) {
    const std::size_t last = std::min(folders.find(':', first), folders.size());
    const fs::path candidate = fs::path(folders.substr(first, last - first)) / program;
    std::error_code failed;
    if (fs::exists(candidate, failed)) return candidate.string();
    first = last + 1;
  }
  return {};
}

}  // namespace

bool shares_gpus(const cluster::Spec& cluster) {
  const auto& nodes = cluster.nodes;
  return std::any_of(nodes.begin(), nodes.end(), [](const cluster::Node& node) { return node.gpu_percent > 0; });
}

Result<std::unique_ptr<GpuShares>> GpuShares::start() {
  std::unique_ptr<GpuShares> made(new GpuShares());
  if (std::getenv(pipe_directory) != nullptr) return made;
  const std::string command = find_program();
  if (command.empty())
    return world_failed(
        fmt::format("gpu_percent: found no {} in the PATH, expected NVIDIA's multi-process service, which shares a GPU; "
                    "install it (it comes with the driver), or give each node a GPU of its own",
                    program));
  auto folder = TemporaryFolder::make("motley-mps", "the GPU's shares");
  if (!folder) return folder.error();
  made->folder_ = std::move(*folder);
  const std::string at = made->folder_.path().string();
  auto started =
      runtime::Child::start(made->event_loop_, {{command, "-f"}, {{pipe_directory, at}, {"CUDA_MPS_LOG_DIRECTORY", at}}, false},
                            {[](const std::string&) {}, [service = made.get()](const runtime::ChildEnd&) { service->ended_ = true; }});
  if (!started) return started.error();
  made->service_ = std::move(*started);
  made->event_loop_.run_for(std::chrono::seconds(1));  // until it listens
  if (made->ended_) {
    std::string output;
    for (const std::string& line : made->service_->last_lines()) output += "\n  " + line;
    return world_failed(fmt::format("gpu_percent: {} ended at once, expected it to share the GPU; its output:{}", command, output));
  }
  return made;
}

GpuShares::~GpuShares() {
  if (service_) {
    service_->signal(SIGTERM);
    event_loop_.restart();
    event_loop_.run_for(std::chrono::seconds(3));
    service_.reset();
  }
}

GpuShares::Environment GpuShares::environment(int percent) const {
  Environment added;
  if (!folder_.none()) added.emplace_back(pipe_directory, folder_.path().string());
  if (percent > 0) added.emplace_back("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", std::to_string(percent));
  return added;
}

}  // namespace motley::runtime
