// Makes a random world from a seed: a random cluster, random faults, a random strategy with random knobs, small and short enough to run
// thousands of them. The same seed always makes the same world.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/gradient_source.h"
#include "base/rng.h"
#include "policy/strategies.h"
#include "sim/world.h"
#include "store/layout.h"

namespace motley::worlds {

enum class Arithmetic : std::uint8_t { none, real, sometimes_broken };  // sometimes_broken: some gradients are NaN

struct MadeWorld {
  std::uint64_t seed{};
  sim::WorldOptions options;
  policy::StrategySpec strategy;
  policy::JobFacts setting;
  Arithmetic arithmetic{};
  std::uint64_t parameters{};
  [[nodiscard]] bool fixed_membership() const {  // no worker joins, leaves or is taken for dead
    return std::all_of(options.cluster.faults.begin(), options.cluster.faults.end(),
                       [](const cluster::Fault& f) { return f.kind == cluster::FaultKind::slow; });
  }
};

/// Random choices.
class Dice {
 public:
  Dice(std::uint64_t seed, std::string_view name) : rng_(seed, name) {}
  bool one_in(std::uint64_t n) { return rng_.below(n) == 0; }
  std::uint32_t whole(std::uint32_t least, std::uint32_t most) { return least + static_cast<std::uint32_t>(rng_.below(most - least + 1)); }
  double real(double least, double most) { return least + (most - least) * rng_.uniform(); }
  /// Log-uniform: every order of magnitude is equally likely.
  double scale(double least, double most) { return least * std::pow(most / least, rng_.uniform()); }
  template <class List>
  const auto& of(const List& list) {
    return list[rng_.below(list.size())];
  }

 private:
  Rng rng_;
};

// Times in these worlds are multiples of the heartbeat.
inline constexpr double beat_s = 0.05;

inline cluster::Link make_link(Dice& dice) {
  const double latency_s = dice.one_in(3) ? 0 : dice.real(0, dice.one_in(5) ? 0.5 * beat_s : 0.05 * beat_s);
  const double slow = dice.one_in(5) ? 1e4 : 1e6;
  return {from_seconds(latency_s), dice.scale(slow, 1e8), dice.scale(slow, 1e8)};
}

inline cluster::Node make_node(Dice& dice, std::uint32_t index, std::size_t groups) {
  cluster::Node node;
  node.name = fmt::format("n{}", index);
  node.samples_per_second = dice.scale(50, 4000);
  node.overhead = from_seconds(dice.one_in(4) ? 0 : dice.real(0, 0.005));
  node.jitter = dice.one_in(2) ? 0 : dice.real(0, 0.3);
  if (dice.one_in(4))
    node.slowdowns = cluster::Slowdowns{dice.real(1, 6), from_seconds(dice.real(0.01, 1)), from_seconds(dice.real(0.05, 5))};
  if (groups > 0 && !dice.one_in(3)) node.group = dice.whole(0, static_cast<std::uint32_t>(groups) - 1);
  node.link = make_link(dice);
  return node;
}

inline cluster::Spec make_cluster(Dice& dice) {
  cluster::Spec spec;
  const std::uint32_t groups = dice.one_in(3) ? dice.whole(1, 2) : 0;
  for (std::uint32_t g = 0; g < groups; ++g) spec.groups.push_back({fmt::format("g{}", g), make_link(dice)});
  const std::uint32_t nodes = dice.whole(1, 9);
  for (std::uint32_t n = 0; n < nodes; ++n) spec.nodes.push_back(make_node(dice, n, groups));
  spec.server_nic = make_link(dice);
  spec.servers = dice.whole(1, 3);
  spec.heartbeat = from_seconds(beat_s);
  spec.silence_deadline = from_seconds(beat_s * dice.whole(5, 8));  // leaves time for two heartbeats and the longest latency
  return spec;
}

/// 1 to 6 slices of at most 500 values; at least one per server, so there may be fewer servers than requested.
inline store::Layout make_layout(Dice& dice, std::uint64_t& parameters, std::uint32_t& servers) {
  std::vector<store::TensorPlace> tensors;
  std::uint64_t end = 0;
  const auto add = [&](TensorKind kind, std::uint64_t count) {
    tensors.push_back({end, count, kind});
    end += count;
  };
  for (std::uint32_t t = dice.whole(1, 3); t > 0; --t) add(TensorKind::parameter, dice.whole(1, 500));
  parameters = end;
  if (dice.one_in(3)) add(TensorKind::statistic, dice.whole(1, 20));
  const std::uint64_t slice_values = std::max<std::uint64_t>(1, end / dice.whole(1, 4));
  servers = std::min(servers, static_cast<std::uint32_t>(store::cut(tensors, slice_values, 1).slices.size()));
  return store::cut(tensors, slice_values, servers);
}

/// Any strategy with any of its knobs.
inline policy::StrategySpec make_strategy(Dice& dice, std::size_t nodes, const policy::JobFacts& setting) {
  policy::StrategySpec spec;
  spec.kind = std::string(dice.of(policy::strategy_names()));
  const auto perhaps = [&](auto knob, auto value) {
    policy::StrategySpec with = spec;
    with.knobs.*knob = value;
    if (dice.one_in(2) && policy::make_strategy(with, setting).ok()) spec = with;  // a knob of another strategy is refused
  };
  perhaps(&policy::Knobs::steps, dice.whole(1, 6));
  perhaps(&policy::Knobs::bound, dice.whole(0, 4));
  perhaps(&policy::Knobs::bound_max, dice.whole(0, 10));
  perhaps(&policy::Knobs::lookahead, dice.whole(0, 4));
  perhaps(&policy::Knobs::clip, dice.one_in(2) ? 0 : dice.real(1.05, 2));
  perhaps(&policy::Knobs::momentum, dice.real(0, 0.9));
  perhaps(&policy::Knobs::replan, dice.whole(1, 10));
  perhaps(&policy::Knobs::overlap, dice.whole(0, 1));
  perhaps(&policy::Knobs::time_limited, dice.one_in(2));
  perhaps(&policy::Knobs::correction, dice.real(0, 1));
  perhaps(&policy::Knobs::control_variate, dice.one_in(2));
  if (dice.one_in(3)) perhaps(&policy::Knobs::without, static_cast<policy::Off>(dice.whole(0, 9)));
  static constexpr std::array<policy::BitsConfig, 5> bits{
      {{false, {32, 32}}, {false, {8, 8}}, {false, {4, 8}}, {false, {2, 4}}, {true, {}}}};
  perhaps(&policy::Knobs::bits, dice.of(bits));
  if (dice.one_in(6))
    for (std::uint32_t n = dice.whole(1, static_cast<std::uint32_t>(nodes)); n > 0; --n)
      spec.batches.push_back(dice.whole(1, setting.global_batch));
  return spec;
}

inline cluster::Fault make_fault(Dice& dice, const cluster::Spec& spec, double run_s) {
  using cluster::FaultKind;
  static constexpr std::array kinds{FaultKind::kill,  FaultKind::pause, FaultKind::slow,
                                    FaultKind::leave, FaultKind::join,  FaultKind::partition};
  cluster::Fault fault;
  fault.kind = dice.of(kinds);
  fault.node = NodeId{dice.whole(0, static_cast<std::uint32_t>(spec.nodes.size()) - 1)};
  fault.at = at_seconds(dice.one_in(5) ? dice.real(0, 2 * beat_s) : dice.real(0, run_s));  // also before the quorum is reached
  fault.lasting = from_seconds(seconds(spec.silence_deadline) * dice.scale(0.1, 4));       // shorter or longer than the deadline
  fault.factor = dice.real(1, 8);
  return fault;
}

/// All workers die at about the same time; another may join later, or too late.
inline void add_disaster(Dice& dice, cluster::Spec& spec, double run_s, double empty_s) {
  const double at_s = dice.real(0, run_s);
  for (std::uint32_t n = 0; n < spec.nodes.size(); ++n)
    spec.faults.push_back({at_seconds(at_s + dice.real(0, 2 * beat_s)),
                           dice.one_in(4) ? cluster::FaultKind::leave : cluster::FaultKind::kill,
                           NodeId{n},
                           {},
                           1});
  for (std::uint32_t joins = dice.whole(0, 2); joins > 0; --joins)
    spec.faults.push_back({at_seconds(at_s + 3 * beat_s + dice.real(0, 1.5 * empty_s)),
                           cluster::FaultKind::join,
                           NodeId{dice.whole(0, static_cast<std::uint32_t>(spec.nodes.size()) - 1)},
                           {},
                           1});
}

inline void add_faults(Dice& dice, cluster::Spec& spec, double run_s, double empty_s) {
  if (dice.one_in(4)) return;
  for (std::uint32_t faults = dice.whole(1, dice.one_in(3) ? 16 : 5); faults > 0; --faults) {
    spec.faults.push_back(make_fault(dice, spec, run_s));
    if (dice.one_in(4)) {  // the next fault strikes at the same moment
      cluster::Fault twin = make_fault(dice, spec, run_s);
      twin.at = spec.faults.back().at;
      spec.faults.push_back(twin);
    }
  }
  if (dice.one_in(6)) add_disaster(dice, spec, run_s, empty_s);
  std::stable_sort(spec.faults.begin(), spec.faults.end(), [](const cluster::Fault& a, const cluster::Fault& b) { return a.at < b.at; });
}

inline MadeWorld make_world(std::uint64_t seed) {
  Dice dice(seed, "world");
  MadeWorld made;
  made.seed = seed;
  made.arithmetic = std::array{Arithmetic::none, Arithmetic::none, Arithmetic::real, Arithmetic::sometimes_broken}[seed % 4];
  sim::WorldOptions& world = made.options;
  world.seed = seed;
  world.cluster = make_cluster(dice);
  world.layout = make_layout(dice, made.parameters, world.cluster.servers);
  made.setting = {dice.whole(1, 64), 0.9};
  made.strategy = make_strategy(dice, world.cluster.nodes.size(), made.setting);

  protocol::ChiefOptions& chief = world.chief;
  const std::uint64_t batch = made.setting.global_batch;
  chief.epoch_samples = std::max<std::uint64_t>(1, dice.whole(1, 40) * batch - dice.whole(0, static_cast<std::uint32_t>(batch) - 1));
  chief.global_batch = made.setting.global_batch;
  chief.total_samples =
      std::max<std::uint64_t>(1, static_cast<std::uint64_t>(dice.real(0.3, 3) * static_cast<double>(chief.epoch_samples)));
  chief.evaluate_every = dice.whole(1, static_cast<std::uint32_t>(chief.epoch_samples));
  chief.servers = world.cluster.servers;
  chief.silence_deadline = world.cluster.silence_deadline;
  chief.empty_deadline = from_seconds(beat_s * dice.whole(10, 40));

  Dice memory(seed, "memory");
  if (memory.one_in(3))
    for (std::size_t n = 0; n < world.cluster.nodes.size(); ++n)
      world.max_batch.push_back(memory.one_in(2) ? 0 : memory.whole(1, made.setting.global_batch));

  double rate = 0;
  for (const cluster::Node& node : world.cluster.nodes) rate += node.samples_per_second;
  const double run_s = 0.2 + 2 * static_cast<double>(chief.total_samples) / rate;
  add_faults(dice, world.cluster, run_s, seconds(chief.empty_deadline));

  std::uint32_t present = 0;
  for (std::uint32_t n = 0; n < world.cluster.nodes.size(); ++n) present += cluster::present_at_start(world.cluster, NodeId{n}) ? 1 : 0;
  chief.quorum = dice.one_in(3) ? dice.whole(1, present + 1) : std::max(1U, present);
  world.max_events = 3'000'000;  // hundreds of times more than these worlds need
  return made;
}

/// A model that is pulled towards sin(i), with a little noise that depends on the sample.
class MadeUpGradients : public GradientSource {
 public:
  /// One call in `broken_one_in` yields NaN; 0: none does.
  MadeUpGradients(std::uint64_t parameters, std::uint64_t seed, std::uint64_t broken_one_in)
      : parameters_(parameters), broken_draws_(seed, "broken gradients"), broken_one_in_(broken_one_in) {}

  void initialize(std::uint64_t, std::span<float> values) override { std::fill(values.begin(), values.end(), 0.5F); }

  StepResult gradient(std::span<const float> values, std::span<const std::uint32_t> samples, std::span<float> out, StepIo&) override {
    double noise = 0;
    for (const std::uint32_t sample : samples) noise += (sample % 7 - 3.0) / static_cast<double>(samples.size());
    StepResult loss{0, 0, samples.size()};
    for (std::size_t i = 0; i < out.size(); ++i) {
      const double error = values[i] - target(i);
      loss.loss_sum += error * error * static_cast<double>(samples.size());
      out[i] = static_cast<float>(i < parameters_ ? error + 0.01 * noise : -0.1 * error);
    }
    if (broken_one_in_ > 0 && broken_draws_.below(broken_one_in_) == 0)
      out[broken_draws_.below(parameters_)] = std::numeric_limits<float>::quiet_NaN();
    return loss;
  }

  StepResult evaluate(std::span<const float> values) override {
    StepResult loss{0, 1, 1};
    for (std::size_t i = 0; i < values.size(); ++i) loss.loss_sum += (values[i] - target(i)) * (values[i] - target(i));
    return loss;
  }

 private:
  static double target(std::size_t i) { return std::sin(static_cast<double>(i)); }
  std::uint64_t parameters_;
  Rng broken_draws_;
  std::uint64_t broken_one_in_;
};

/// Upper limits of durations in this world, generous but finite.
struct Limits {
  Duration longest_stage{};  // of one receive, compute or send
  Duration longest_quiet{};  // with members but without activity: only while the quorum is awaited
};

inline Limits limits_of(const MadeWorld& made) {
  const cluster::Spec& spec = made.options.cluster;
  double slow = 1;
  double stopped_s = 0;
  for (const cluster::Fault& fault : spec.faults) {
    if (fault.kind == cluster::FaultKind::slow) slow *= fault.factor;
    if (fault.kind == cluster::FaultKind::pause || fault.kind == cluster::FaultKind::partition) stopped_s += seconds(fault.lasting);
  }
  constexpr double five_deviations = 4.5;  // exp(5 * 0.3): of the jitter of make_node()
  const double steps = std::max(8U, made.strategy.knobs.steps.value_or(8));
  const double samples = made.setting.global_batch * steps;
  double compute_s = 0;
  double slowest_link = std::min(spec.server_nic.up_bytes_per_second, spec.server_nic.down_bytes_per_second);
  for (const cluster::Node& node : spec.nodes) {
    const double undisturbed = seconds(node.overhead) * steps + samples / node.samples_per_second;
    compute_s = std::max(compute_s, undisturbed * (node.slowdowns ? node.slowdowns->factor : 1) * slow * five_deviations);
    slowest_link = std::min({slowest_link, node.link.up_bytes_per_second, node.link.down_bytes_per_second});
  }
  for (const cluster::Group& group : spec.groups)
    slowest_link = std::min({slowest_link, group.uplink.up_bytes_per_second, group.uplink.down_bytes_per_second});
  const double model_bytes = 4.0 * static_cast<double>(made.options.layout.values);
  const double transfer_s =
      4 * static_cast<double>(spec.nodes.size()) * model_bytes / slowest_link;  // of all workers, twice, for those that rejoined
  return {from_seconds(compute_s + transfer_s + stopped_s + 4 * beat_s), spec.silence_deadline + 3 * spec.heartbeat};
}

inline std::string describe(const MadeWorld& made) {
  static constexpr std::array<std::string_view, 6> faults{"kill", "pause", "slow", "leave", "join", "partition"};
  const sim::WorldOptions& w = made.options;
  std::string text = fmt::format(
      "seed {}: {} with {} nodes, {} servers, {} slices, batch {}, {} samples in epochs of {}, quorum {}, arithmetic {}, deadline {} s, "
      "empty {} s\n",
      made.seed, made.strategy.kind, w.cluster.nodes.size(), w.cluster.servers, w.layout.slices.size(), made.setting.global_batch,
      w.chief.total_samples, w.chief.epoch_samples, w.chief.quorum, static_cast<int>(made.arithmetic), seconds(w.chief.silence_deadline),
      seconds(w.chief.empty_deadline));
  for (std::size_t n = 0; n < w.max_batch.size(); ++n)
    if (w.max_batch[n] > 0) text += fmt::format("  node {} holds {} samples\n", n, w.max_batch[n]);
  for (const cluster::Fault& f : w.cluster.faults)
    text += fmt::format("  {:.6f} s: {} node {} for {:.3f} s, factor {:.2f}\n", seconds(f.at), faults.at(static_cast<std::size_t>(f.kind)),
                        f.node.value, seconds(f.lasting), f.factor);
  return text;
}

}  // namespace motley::worlds
