// Examines this machine: /proc, torch, the data sets, the folder for results.
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <thread>

#include "cli/doctor.h"
#include "learn/data.h"
#include "learn/learner.h"

namespace motley::cli {
namespace {

/// The value of the line "key: value" in a file; empty when there is none.
std::string proc_value(const char* file, std::string_view key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const std::size_t colon = line.find(':');
    if (!line.starts_with(key) || colon == std::string::npos) continue;
    const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

/// In bytes; /proc/meminfo counts in KiB.
std::uint64_t memory(std::string_view key) {
  std::uint64_t kib = 0;
  std::istringstream(proc_value("/proc/meminfo", key)) >> kib;
  return kib * 1024;
}

std::string blas_of(const std::string& backend) {
  if (!learn::available()) return "none";
  if (backend.find("MKL") != std::string::npos) return "MKL";
  const bool open = backend.find("OpenBLAS") != std::string::npos && backend.find("not OpenBLAS") == std::string::npos;
  return open ? "OpenBLAS" : "other";
}

DataFact look_for(const std::string& kind, const std::filesystem::path& folder) {
  const auto loaded = learn::load({.kind = kind, .path = {}});
  return {kind, folder, loaded.ok(), loaded.ok() ? "" : loaded.error().message};
}

/// Whether the folder is writable, or can be created.
bool writable(const std::filesystem::path& folder) {
  std::error_code ignored;
  const auto place = std::filesystem::exists(folder, ignored) ? folder : folder.parent_path();
  return std::filesystem::is_directory(place, ignored) && access(place.c_str(), W_OK | X_OK) == 0;
}

}  // namespace

Facts gather_facts() {
  Facts facts;
  facts.cpu = proc_value("/proc/cpuinfo", "model name");
  facts.cores = std::thread::hardware_concurrency();
  facts.memory_bytes = memory("MemTotal");
  facts.memory_available = memory("MemAvailable");
  facts.torch = learn::available();
  facts.backend = learn::describe_backend();
  facts.blas = blas_of(facts.backend);
  facts.data.push_back(look_for("fashion-mnist", "/usr/share/datasets/fashion-mnist"));
  std::error_code ignored;
  facts.runs = std::filesystem::current_path(ignored) / "runs";
  facts.runs_writable = writable(facts.runs);
  return facts;
}

}  // namespace motley::cli
