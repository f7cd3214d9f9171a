// A comparison as a real run would give it, made up from a seed. For the tests of this room only; the library does not include it.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "base/rng.h"
#include "report/comparison.h"

namespace motley::report {

/// Parameters of a made-up strategy.
struct Character {
  std::string name;
  double pace;     // seconds of its slowest curve time constant
  double ceiling;  // accuracy it tends to
  double wait;     // share of a fast worker's step
  double comm;     // share of a step
  int staleness;   // largest usual delay
};

inline const std::vector<Character>& characters() {
  static const std::vector<Character> all{{"bsp", 30, 0.892, 0.62, 0.20, 0},
                                          {"lb-bsp", 14.5, 0.892, 0.10, 0.22, 0},
                                          {"asp", 17, 0.858, 0.0, 0.2, 9},
                                          {"ssp", 19, 0.884, 0.25, 0.2, 3},
                                          {"dssp", 18, 0.886, 0.18, 0.2, 5},
                                          {"local-sgd:steps=16", 25, 0.886, 0.55, 0.02, 0},
                                          {"hps", 9.2, 0.893, 0.02, 0.01, 1},
                                          {"multistep", 10.4, 0.89, 0.01, 0.0, 1},
                                          {"adaptive", 10.9, 0.892, 0.03, 0.06, 2},
                                          {"adaptive:bits=32", 12.8, 0.892, 0.03, 0.14, 2},
                                          {"grouped", 13.5, 0.889, 0.07, 0.1, 2},
                                          {"asp-look", 16, 0.872, 0.0, 0.2, 9},
                                          {"hps:bits=4/8,overlap=off,replan_every=50", 11.7, 0.891, 0.05, 0.07, 0},
                                          {"local-sgd", 21, 0.887, 0.5, 0.04, 0}};
  return all;
}

inline std::vector<Point> sample_curve(const Character& one, Rng rng, double noise) {
  std::vector<Point> curve;
  const double own = one.pace * (1 + 0.05 * rng.normal());
  for (int i = 1; i <= 60; ++i) {
    const double time = one.pace * 0.22 * i;
    const double accuracy = one.ceiling - 0.42 * std::exp(-std::sqrt(time / own) * 1.9) * 2 + noise * rng.normal();
    curve.push_back({time, time * 2400, accuracy, 1 - accuracy});
  }
  return curve;
}

inline std::optional<double> first_at(const std::vector<Point>& curve, double target) {
  for (const Point& point : curve)
    if (point.accuracy >= target) return point.time_s;
  return std::nullopt;
}

/// Smoothed over 3 evaluations, as the contract of Row says.
inline std::vector<Point> mean_of(const std::vector<std::vector<Point>>& curves) {
  std::vector<Point> mean = curves[0];
  for (std::size_t i = 0; i < mean.size(); ++i) {
    double sum = 0;
    int n = 0;
    for (const auto& curve : curves)
      for (std::size_t k = i < 2 ? 0 : i - 2; k <= i; ++k, ++n) sum += curve[k].accuracy;
    mean[i].accuracy = sum / n;
  }
  return mean;
}

inline std::vector<Lane> sample_timeline(const Character& one, Rng rng) {
  constexpr std::array speeds{1.0, 1.0, 0.5, 0.25};
  constexpr std::array names{"fast-1", "fast-2", "middle", "slow"};
  std::vector<Lane> lanes;
  const double step = 0.1 + one.pace * 0.01;
  for (std::size_t w = 0; w < speeds.size(); ++w) {
    Lane lane{names[w], {}};
    double now = 12.5;
    const auto add = [&](double length, Phase phase) {
      if (length > 1e-4) lane.spans.push_back({now, now + length, phase});
      now += std::max(0.0, length);
    };
    const double own_wait = one.wait * (w < 2 ? 1.0 : w == 2 ? 0.6 : 0.04);
    for (int i = 0; i < 4; ++i) {
      const double jitter = 1 + 0.03 * rng.normal();
      add(step * (1 - own_wait - one.comm) * jitter, Phase::compute);
      add(step * one.comm * 0.5, Phase::send);
      add(step * own_wait, Phase::wait);
      add(step * one.comm * 0.5, Phase::receive);
    }
    lanes.push_back(std::move(lane));
  }
  return lanes;
}

inline std::vector<std::uint64_t> sample_staleness(const Character& one, Rng rng) {
  std::vector<std::uint64_t> histogram(static_cast<std::size_t>(one.staleness) + 1);
  for (int i = 0; i < 4000; ++i) {
    const double delay = one.staleness * 0.5 + one.staleness * 0.2 * rng.normal();
    ++histogram[static_cast<std::size_t>(std::clamp(std::lround(delay), 0L, static_cast<long>(one.staleness)))];
  }
  return histogram;
}

/// Four workers of which one turns slow in the middle; bits go down once.
inline std::vector<WorkerHistory> sample_histories() {
  std::vector<WorkerHistory> histories;
  for (int w = 0; w < 4; ++w) {
    WorkerHistory history{"node-" + std::to_string(w), {}};
    for (int i = 0; i < 60; ++i)
      history.shares.push_back({0.5 * i, i < 30 || w > 0 ? 47.0 - 11 * w : 14.0, i < 10 ? 32.0 : 4.0, i < 10 ? 32.0 : 8.0});
    histories.push_back(std::move(history));
  }
  return histories;
}

/// As `adaptive` tells them: the last of four straggles in the middle, is cancelled and at last discarded.
inline States sample_states() {
  States states;
  states.whole = {{0, 8, State::in_step}, {8, 14, State::lagging}, {14, 15, State::over_stale}, {15, 30, State::in_step}};
  states.lasted_s = {23, 6, 1};
  for (int w = 0; w < 4; ++w) states.workers.push_back({"node-" + std::to_string(w), {}, {}, 0});
  states.workers[3].straggling = {{8, 15, "its step takes far longer than the others'"}};
  states.workers[3].marks = {{14.2, true, "it would come too late to be of use"},
                             {14.9, false, "it points against the way the model goes"}};
  states.workers[3].straggled_s = 7;
  states.cancelled = states.discarded = 1;
  states.staleness = {{{400, 20}, {40, 5, 30, 12}, {}}};
  return states;
}

/// As `grouped` tells them: one group, then two, then one worker goes over.
inline Groups sample_groups() {
  Groups groups;
  groups.workers = {{"node-0", {{0, 4, 0}, {4, 30, 1}}},
                    {"node-1", {{0, 4, 0}, {4, 18, 1}, {18, 30, 0}}},
                    {"node-2", {{0, 30, 0}}},
                    {"node-3", {{0, 30, 0}}}};
  groups.rates.resize(2);
  for (int i = 0; i < 60; ++i) {
    groups.rates[0].push_back({0.5 * i, i < 8 ? 0.02 : 0.005});
    if (i >= 8) groups.rates[1].push_back({0.5 * i, i < 36 ? 0.015 : 0.01});
  }
  return groups;
}

inline Row sample_row(const Character& one, std::uint64_t number, std::size_t seeds, double target) {
  Row row;
  row.strategy = one.name;
  std::vector<double> ends;
  for (std::size_t s = 0; s < seeds; ++s) {
    row.curves.push_back(sample_curve(one, Rng(number, "curve", s), 0.0025));
    row.time_to_target_per_seed.push_back(first_at(row.curves.back(), target));
    ends.push_back(row.curves.back().back().accuracy);
    row.final_accuracy_mean += ends.back() / static_cast<double>(seeds);
  }
  for (const double end : ends) row.final_accuracy_std += (end - row.final_accuracy_mean) * (end - row.final_accuracy_mean);
  row.final_accuracy_std = seeds > 1 ? std::sqrt(row.final_accuracy_std / static_cast<double>(seeds - 1)) : 0;
  row.mean_curve = mean_of(row.curves);
  row.time_to_target_s = first_at(row.mean_curve, target);
  row.sum_of_parts_samples_per_second = 2750;
  row.wait_share = one.wait * 0.8;
  row.exposed_comm_share = one.comm;
  row.samples_per_second = 2750 * std::max(0.2, 1 - row.wait_share - row.exposed_comm_share);
  row.bytes_total = 1.1e9 * (1 + one.comm * 20);
  row.overlap_ratio = 1 - one.comm;
  row.histories = sample_histories();
  for (int i = 0; i < 60; ++i) row.finishes.push_back({0.5 * i, i == 30 ? 0.15 : 0.002});
  row.samples = 180'000;
  row.returned_samples = 1'800;
  row.timeline = sample_timeline(one, Rng(number, "timeline"));
  row.staleness = sample_staleness(one, Rng(number, "staleness"));
  if (row.strategy.starts_with("adaptive")) row.states = sample_states();
  if (row.strategy.starts_with("grouped")) row.groups = sample_groups();
  return row;
}

inline std::optional<double> ratio(const std::optional<double>& other, const std::optional<double>& own) {
  return other && own ? std::optional{*other / *own} : std::nullopt;
}

/// The first `strategies` (at most 14) of characters(), over seeds 0, 1, ...
inline Comparison sample(std::size_t strategies, std::size_t seeds) {
  Comparison comparison;
  comparison.job = "4421-cheap";
  comparison.command =
      "motley compare examples/4421-cheap.toml --strategies bsp,lb-bsp,asp,ssp,dssp,local-sgd:steps=16,hps,multistep,adaptive --seeds 5";
  comparison.target_accuracy = 0.86;
  for (std::size_t s = 0; s < seeds; ++s) comparison.seeds.push_back(s);
  comparison.workers = {"fast-1: 1,000 samples/s, 2 ms overhead, 135 MB/s", "fast-2: 1,000 samples/s, 2 ms overhead, 135 MB/s",
                        "middle: 500 samples/s, 2 ms overhead, 135 MB/s", "slow: 250 samples/s, 4 ms overhead, 40 MB/s"};
  comparison.network = {"1 server, 269 MB/s up, 269 MB/s down, 0.2 ms latency", "group rack: 2 workers share 135 MB/s up, 135 MB/s down"};
  comparison.faults = {"at 10 s middle runs 4 times slower for 8 s", "at 20 s slow is killed"};
  for (std::size_t i = 0; i < strategies; ++i)
    comparison.rows.push_back(sample_row(characters()[i], i, seeds, *comparison.target_accuracy));
  for (Row& row : comparison.rows) {
    row.speedup_vs_bsp = ratio(comparison.rows[0].time_to_target_s, row.time_to_target_s);
    if (strategies > 1) row.speedup_vs_lb_bsp = ratio(comparison.rows[1].time_to_target_s, row.time_to_target_s);
  }
  return comparison;
}

}  // namespace motley::report
