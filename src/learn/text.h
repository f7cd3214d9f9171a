// A text in memory as character codes. Its vocabulary is its distinct bytes, in byte order; a sample is context+1 consecutive
// characters, of which the first `context` are the input and the last `context` the targets. Sample i starts at i x context.
#pragma once
#include <cstdint>
#include <filesystem>
#include <span>

#include "learn/files.h"
#include "learn/split.h"

namespace motley::learn {

struct Text {
  std::uint64_t context{};
  std::uint64_t vocabulary{};
  Bytes training;  // codes, each below `vocabulary`
  Bytes evaluation;

  /// Samples in a run of codes.
  [[nodiscard]] std::uint64_t samples(const Bytes& part) const { return part.empty() ? 0 : (part.size() - 1) / context; }

  void gather(const Bytes& part, std::span<const std::uint32_t> samples, std::span<std::int64_t> codes,
              std::span<std::int64_t> targets) const;
};

/// `path` is a file, or a folder whose .txt files are joined in the order of their names. The last tenth of the
/// characters is the test part, the rest the training set.
Result<Text> load_text(const std::filesystem::path& path, std::uint64_t context, EvaluateOn evaluate_on);

}  // namespace motley::learn
