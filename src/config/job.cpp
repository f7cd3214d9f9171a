#include "config/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "config/job_sections.h"
#include "config/toml_override.h"
#include "config/toml_write.h"

namespace motley::config {
namespace {

constexpr double longest_run_s = 1e9;  // thirty years, simulated or real

std::size_t workers_at_start(const cluster::Spec& spec) {
  std::size_t n = 0;
  for (std::uint32_t i = 0; i < spec.nodes.size(); ++i) n += cluster::present_at_start(spec, NodeId{i}) ? 1 : 0;
  return n;
}

/// One batch for each worker present at the start; their sum must be the global batch.
void check_batches(Reader& section, const Job& job) {
  const auto& batches = job.strategy.batches;
  const std::size_t workers = workers_at_start(job.cluster);
  if (batches.size() != workers)
    section.complain("per_worker", fmt::format("{} entries, one for each worker present at the start", workers));
  const std::uint64_t sum = std::accumulate(batches.begin(), batches.end(), std::uint64_t{0});
  if (sum != job.global_batch)
    section.complain_found("per_worker", fmt::format("a sum of {}", sum), fmt::format("{}, which is batch.global", job.global_batch));
}

Job defaults(const std::filesystem::path& file) {
  Job job;
  job.file = file;
  job.name = file.stem().string();
  return job;
}

/// Small enough that slices can be sent by priority, large enough that the fixed cost of a slice is small beside its transfer time.
std::uint64_t usual_slice_bytes(const cluster::Spec& cluster) {
  constexpr double transfer_s = 50e-6;  // of one slice on the fastest link
  constexpr std::uint64_t least = 64 << 10;
  constexpr std::uint64_t least_of_gpus = 512 << 10;  // a GPU makes gradients faster than a network sends them
  constexpr std::uint64_t most = 1 << 20;
  std::uint64_t bytes = least;
  for (const cluster::Node& node : cluster.nodes) {
    const double fastest = std::max(node.link.up_bytes_per_second, node.link.down_bytes_per_second);
    bytes = std::max({bytes, static_cast<std::uint64_t>(std::min(transfer_s * fastest, static_cast<double>(most))),
                      node.device == cluster::DeviceKind::cuda ? least_of_gpus : least});
  }
  return bytes / sizeof(float) * sizeof(float);
}

}  // namespace

void read_training(Reader section, Job& job) {
  section.name("name", job.name, "name of the run in reports and folders; default: the file's name");
  section.integer("seed", job.seed, at_least(0), "seed of all random numbers");
  section.number("max_epochs", job.max_epochs, above(0).no_more_than(1e6).in("epochs"),
                 "training ends after this many epochs at the latest");
  section.number("max_seconds", job.max_seconds, above(0).no_more_than(longest_run_s).in("seconds"),
                 "training ends after this many seconds at the latest, simulated or real");
  section.number("evaluate_every", job.evaluate_every, above(0).no_less_than(1e-4).no_more_than(1e6).in("epochs"),
                 "epochs from one evaluation to the next");
  section.number("target_accuracy", job.target_accuracy, above_up_to(0, 1),
                 "share of the evaluation set that is classified correctly; 86 % is written 0.86");
  section.finish();
}

void read_wire(Reader section, Job& job) {
  if (!section.has("slice")) job.slice_bytes = usual_slice_bytes(job.cluster);
  section.bytes("slice", job.slice_bytes, between(4, 64 << 20),
                "size of a slice, the unit of sending and updating; default: chosen by the fastest link");
  if (job.slice_bytes % sizeof(float) != 0) section.complain("slice", "a multiple of 4 bytes (the size of one value)");
  section.choice<bool>("unit", job.layout_options.whole_tensors, std::array<Named<bool>, 2>{{{"slice", false}, {"tensor", true}}},
                       "cut tensors into slices, or send whole tensors");
  section.choice<bool>("order", job.layout_options.backward_order, std::array<Named<bool>, 2>{{{"priority", false}, {"fifo", true}}},
                       "order in which slices are sent: as the forward pass needs them, or as the backward pass makes them");
  section.choice<bool>("stream", job.streams, std::array<Named<bool>, 2>{{{"true", true}, {"false", false}}},
                       "simulated and emulated devices also receive parameters and send gradients layer by layer");
  section.finish();
}

void read_batch(Reader section, Job& job) {
  constexpr double largest_batch = 1 << 24;
  section.integer("global", job.global_batch, at_least(1).no_more_than(largest_batch).in("samples"),
                  "samples of one update, summed over all workers");
  const std::size_t nodes = job.cluster.nodes.size();
  if (job.global_batch < nodes)
    section.complain_found("global", fmt::format("{}", job.global_batch),
                           fmt::format("at least {} (one sample for each node of the cluster)", nodes));
  section.integers("per_worker", job.strategy.batches, between(1, largest_batch).in("samples"), 100'000,
                   "fixed batch of each worker present at the start, in the order of the nodes");
  if (!job.strategy.batches.empty()) check_batches(section, job);
  section.finish();
}

void read_sections(Reader& root, Job& job, const KnownKinds& known) {
  read_training(root.section("job", "The run: when it ends, how often it is evaluated."), job);
  read_model(root.section("model", "The model."), job, known);
  read_data(root.section("data", "The data set."), job, known);
  read_optimizer(root.section("optimizer", "The update rule and the learning rate."), job);
  read_cluster(root.section("cluster", "Nodes, links, servers and faults; when a silent worker counts as dead."), job);
  read_wire(root.section("wire", "How parameters and gradients are cut and sent."), job);
  read_batch(root.section("batch", "Batch sizes."), job);
  read_pipeline(root.section("pipeline", "A model cut across the nodes; for pipeline strategies."), job);
  read_strategy_section(
      root.section("strategy", "The strategy and its knobs; [strategies.md](strategies.md) says which strategy takes which."),
      job.strategy);
  root.finish();
}

namespace {

Result<Value> apply_overrides(Result<Value> document, std::span<const std::string> overrides) {
  if (!document) return document.error();
  for (const std::string& text : overrides)
    if (const Outcome set = apply_override(*document, text); !set) return set.error();
  return document;
}

Result<Job> read_document(const Value& document, const std::filesystem::path& file, const KnownKinds& known) {
  Complaints complaints;
  Reader root(document, "", complaints);
  Job job = defaults(file);
  read_sections(root, job, known);
  if (!complaints.empty()) return complaints.error();
  return job;
}

/// The table `key` of `document`, created when it is missing.
Table& section_of(Value& document, const std::string& key) {
  auto& root = std::get<Table>(document.held);
  if (root.find(key) == nullptr) root.entries.push_back({key, Value{Table{}, document.where}});
  return std::get<Table>(root.find(key)->held);
}

void set(Table& table, const std::string& key, Value value) {
  if (Value* held = table.find(key))
    *held = std::move(value);
  else
    table.entries.push_back({key, std::move(value)});
}

}  // namespace

Result<Job> read_job(const std::filesystem::path& file, std::span<const std::string> overrides, const KnownKinds& known) {
  const auto document = apply_overrides(load_toml(file), overrides);
  if (!document) return document.error();
  return read_document(*document, file, known);
}

Result<Job> parse_job(const std::string& text, const std::string& name) {
  const auto document = parse_toml(text, name);
  if (!document) return document.error();
  return read_document(*document, name, {});
}

namespace {

Result<std::string> resolve_document(Result<Value> document, const std::filesystem::path& file, const std::optional<std::string>& strategy,
                                     std::optional<std::uint64_t> seed, const KnownKinds& known) {
  if (!document) return document.error();
  const auto job = read_document(*document, file, known);
  if (!job) return job.error();
  set(section_of(*document, "job"), "name", {job->name, file.string()});
  if (seed) set(section_of(*document, "job"), "seed", {static_cast<std::int64_t>(*seed), "--seed"});
  if (strategy) {
    if (const auto alignment_known = read_strategy(*job, *strategy); !alignment_known) return alignment_known.error();
    auto entry = strategy_table(*strategy, "--strategy");
    if (!entry) return entry.error();
    Table& section = section_of(*document, "strategy");
    const auto& kind = std::get<std::string>(std::get<Table>(entry->held).find("kind")->held);
    if (kind != job->strategy.kind) section.entries.clear();  // knobs of another strategy do not apply to this one
    for (Entry& knob : std::get<Table>(entry->held).entries) set(section, knob.key, std::move(knob.value));
  }
  return write_toml(*document);
}

}  // namespace

Result<std::string> resolve_job(const std::filesystem::path& file, std::span<const std::string> overrides,
                                const std::optional<std::string>& strategy, std::optional<std::uint64_t> seed, const KnownKinds& known) {
  return resolve_document(apply_overrides(load_toml(file), overrides), file, strategy, seed, known);
}

Result<std::string> resolve_job_text(const std::string& text, const std::string& name, std::span<const std::string> overrides,
                                     const std::optional<std::string>& strategy, std::optional<std::uint64_t> seed) {
  return resolve_document(apply_overrides(parse_toml(text, name), overrides), name, strategy, seed, {});
}

}  // namespace motley::config
