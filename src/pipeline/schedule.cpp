#include "pipeline/schedule.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "pipeline/constants.h"

namespace motley::pipeline {
namespace {

constexpr std::array<std::string_view, 6> names{"naive-mp", "gpipe", "1f1b", "pipedream", "2bw", "adapipe"};

/// Time from the begin of a micro-batch's forward on stage s until its gradient is back and used there, without contention.
double round_trip_s(const Problem& problem, const Cut& cut, const Cost& cost, std::size_t s) {
  double time = 0;
  for (std::size_t k = s; k < cut.size(); ++k) {
    double work = 0;
    for (std::uint32_t b = cut[k].first; b < cut[k].last; ++b) work += problem.blocks[b].forward_s + problem.blocks[b].input_s;
    const Device& device = problem.devices[cut[k].device];
    time += work / device.speed + device.overhead_s * 2 / 3;
    if (k + 1 < cut.size()) time += 2 * (cost.link_s[k] + problem.links[cut[k].device][cut[k + 1].device].latency_s);
  }
  return time;
}

}  // namespace

std::vector<double> stash_of(const Schedule& schedule, const Problem& problem, const Cut& cut) {
  const Sums sums(problem.blocks);
  std::vector<double> bytes;
  for (std::size_t s = 0; s < cut.size(); ++s) {
    const std::uint32_t in_flight = (schedule.ahead + 1) * schedule.micro_batches;
    const std::uint32_t waiting = schedule.defers_weight_gradients ? 2 : 0;  // for the gradient of their weights
    const std::uint32_t kept = std::min(schedule.max_in_flight[s] + waiting, in_flight);
    // The first forwards of a mini-batch run ahead, the rest do not. With so many kept that forwards of two mini-batches run ahead at
    // once, two predictions are in use.
    const bool meet = schedule.predicts && 2 * kept > schedule.micro_batches + 1;
    const std::uint32_t versions = meet ? 2 : std::min(schedule.ahead, kept - 1);
    bytes.push_back(kept * sums.kept_bytes(cut[s].first, cut[s].last) + versions * sums.parameter_bytes(cut[s].first, cut[s].last));
  }
  return bytes;
}

std::vector<double> memory_of(const Schedule& schedule, const Problem& problem, const Cut& cut) {
  const Sums sums(problem.blocks);
  std::vector<double> bytes = stash_of(schedule, problem, cut);
  for (std::size_t s = 0; s < cut.size(); ++s) bytes[s] += stage_bytes(sums.parameter_bytes(cut[s].first, cut[s].last), 0, 0);
  return bytes;
}

std::span<const std::string_view> schedule_names() { return names; }

double softening(const Schedule& schedule, std::uint32_t stage, std::uint64_t mini, std::uint64_t mini_batches) {
  if (!schedule.softens) return 1;
  const double micros = schedule.micro_batches;
  const double late = std::min(micros, schedule.max_in_flight[stage] - 1.0) / micros;
  const double passed = static_cast<double>(mini) / (softening_share * static_cast<double>(mini_batches));
  return std::pow(1 + late, -softening_exponent * (1 - std::min(passed, 1.0)));
}

Schedule make_schedule(const ScheduleOptions& options, const Problem& problem, const Cut& cut) {
  check(std::find(names.begin(), names.end(), options.name) != names.end(), "a schedule has a name that is known");
  const auto stages = static_cast<std::uint32_t>(cut.size());
  Schedule made;
  made.name = options.name;
  const bool whole = options.name == "naive-mp" || options.name == "pipedream";
  made.micro_batches = whole ? 1 : options.micro_batches;
  made.forwards_first = options.name == "gpipe";
  if (options.name == "pipedream") made.ahead = stages;
  if (options.name == "2bw") made.ahead = 1;
  for (std::uint32_t s = 0; s < stages; ++s) made.max_in_flight.push_back(options.name == "gpipe" ? made.micro_batches : stages - s);
  if (options.name != "adapipe") return made;

  made.ahead = 1;
  made.replan_every = replan_interval;
  made.defers_weight_gradients = made.predicts = made.clips = made.softens = true;
  const Cost cost = cost_of(problem, cut);
  const double extra = options.jitter > high_jitter ? spare_with_jitter : spare;
  for (std::uint32_t s = 0; s < stages; ++s) {
    const double wanted = std::ceil(round_trip_s(problem, cut, cost, s) / cost.slot_s + extra);
    const std::uint32_t most = made.micro_batches + 1;
    made.max_in_flight[s] = static_cast<std::uint32_t>(std::clamp<double>(wanted, std::min(stages - s, most), most));
  }
  return made;
}

}  // namespace motley::pipeline
