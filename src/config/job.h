// Job: the content of a TOML job file, checked and with defaults resolved. No other module reads the file.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/data_spec.h"
#include "base/layout_options.h"
#include "base/model_spec.h"
#include "base/optimizer_spec.h"
#include "base/result.h"
#include "cluster/spec.h"
#include "config/known_kinds.h"
#include "policy/spec.h"

namespace motley::config {

/// [pipeline]: a model that is cut across the nodes.
struct PipelineSpec {
  std::string cut = "planned";            // or "uniform"
  std::vector<std::uint32_t> boundaries;  // of a manual cut: the first block of each stage after the first
  std::uint32_t stages = 0;               // at most; 0: as many as there are nodes
  std::uint32_t micro_batches = 0;        // 0: four for each node, or two where that is faster
  std::uint32_t slices = 4;               // pieces in which an activation or its gradient is sent
  std::filesystem::path
      profile;  // empty: estimated from the arithmetic of each block; "equal": the same for all blocks; "measured": timed at the start
};

struct Job {
  std::string name;  // default: the file's name without its extension
  std::filesystem::path file;
  std::uint64_t seed = 0;
  double max_epochs = 3;
  std::optional<double> max_seconds;      // simulated or real
  std::optional<double> target_accuracy;  // 0..1
  double evaluate_every = 1;              // epochs, fractions allowed
  bool timing_only = false;               // [model] kind = "none": no gradients, only times and versions

  ModelSpec model;
  std::uint64_t timing_values = 0;            // timing only: number of parameters
  std::uint64_t timing_samples = 0;           // timing only: samples per epoch
  std::uint64_t timing_activation_bytes = 0;  // timing only: memory per sample of a step
  DataSpec data;
  OptimizerSpec optimizer;
  policy::LrScheduleSpec schedule;
  std::uint32_t global_batch = 128;
  policy::StrategySpec strategy;
  std::uint64_t slice_bytes = 65536;  // [wire] slice; default: chosen by the fastest link
  LayoutOptions layout_options;       // [wire] unit, order
  bool streams = false;               // [wire] stream: simulated and emulated devices read and make slices block by block too
  PipelineSpec pipeline;
  cluster::Spec cluster;
};

/// Reads `file`, then applies each "a.b=c" of `overrides` (the value is a TOML value; a bare word is a string). Every error names file,
/// line, key, the value found and the value expected; unknown keys get the nearest known one as a suggestion.
Result<Job> read_job(const std::filesystem::path& file, std::span<const std::string> overrides, const KnownKinds& known = {});

/// The same for a text; `name` stands for the file in errors.
Result<Job> parse_job(const std::string& text, const std::string& name);

/// The job as one text that includes overrides, strategy (as in a strategy list), seed and name. parse_job() of it gives the same job as
/// read_job() with all the arguments.
Result<std::string> resolve_job(const std::filesystem::path& file, std::span<const std::string> overrides,
                                const std::optional<std::string>& strategy, std::optional<std::uint64_t> seed,
                                const KnownKinds& known = {});

/// The same from a text that `name` stands for in errors.
Result<std::string> resolve_job_text(const std::string& text, const std::string& name, std::span<const std::string> overrides,
                                     const std::optional<std::string>& strategy, std::optional<std::uint64_t> seed);

/// One entry of a strategy list: "local-sgd:steps=16" or "ssp:bound=2:lookahead=0". Knobs of the job's [strategy] apply first when the kind
/// is the same.
Result<policy::StrategySpec> read_strategy(const Job& job, const std::string& text);

}  // namespace motley::config
