// A job: everything a user says in one TOML file, checked and resolved. Reading it is the only place where its text is understood.
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

/// [pipeline]: a model cut across the nodes.
struct PipelineSpec {
  std::string cut = "planned";            // or "uniform"
  std::vector<std::uint32_t> boundaries;  // of a cut by hand: the first block of each stage after the first
  std::uint32_t stages = 0;               // at most; 0: as many as there are nodes
  std::uint32_t micro_batches = 0;        // 0: four for each node, or two where that is faster
  std::uint32_t slices = 4;               // in which an output or a gradient travels
  std::filesystem::path profile;  // empty: the model's arithmetic is counted; "equal": all blocks take as long; "measured": as long as here
};

struct Job {
  std::string name;  // default: the file's name without its ending
  std::filesystem::path file;
  std::uint64_t seed = 0;
  double max_epochs = 3;
  std::optional<double> max_seconds;      // virtual or real
  std::optional<double> target_accuracy;  // 0..1
  double evaluate_every = 1;              // epochs, fractions allowed
  bool timing_only = false;               // [model] kind = "none": no gradients, only time and versions

  ModelSpec model;
  std::uint64_t timing_values = 0;            // timing only: how many values the model has
  std::uint64_t timing_samples = 0;           // timing only: samples per epoch
  std::uint64_t timing_activation_bytes = 0;  // timing only: memory that each sample of a step takes
  DataSpec data;
  OptimizerSpec optimizer;
  policy::LrScheduleSpec schedule;
  std::uint32_t global_batch = 128;
  policy::StrategySpec strategy;
  std::uint64_t slice_bytes = 65536;  // [wire] slice; when it is not said, by the links
  LayoutOptions layout_options;       // [wire] unit, order
  bool streams = false;               // [wire] stream: devices that are only described read and make slices block by block too
  PipelineSpec pipeline;
  cluster::Spec cluster;
};

/// Reads `file`, then applies each "a.b=c" of `overrides` (the value is a TOML value; a bare word counts as a string).
/// Every error says file, line, key, what was found, what was expected; unknown keys get the nearest known one as a suggestion.
Result<Job> read_job(const std::filesystem::path& file, std::span<const std::string> overrides, const KnownKinds& known = {});

/// The same from a text that `name` stands for in errors.
Result<Job> parse_job(const std::string& text, const std::string& name);

/// The job as text that needs no more arguments: overrides, strategy (as in a strategy list) and seed are in it, and its name. What
/// parse_job() makes of it is what read_job() would have made of all of them.
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
