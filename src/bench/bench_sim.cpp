#include <sys/resource.h>

#include <cmath>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "bench/bench.h"
#include "policy/strategies.h"
#include "runtime/stopwatch.h"
#include "sim/world.h"
#include "trace/sinks.h"

namespace motley::bench {
namespace {

constexpr std::uint32_t samples_per_step = 32;

/// Workers of four speeds, one slice of 64 KiB, a server that is not the bottleneck.
sim::WorldOptions timing_world(std::uint32_t workers, std::uint32_t steps) {
  sim::WorldOptions world;
  cluster::Node node;
  node.overhead = from_seconds(0.002);
  node.jitter = 0.1;
  node.link = {from_seconds(0.0002), 125e6, 125e6};
  for (std::uint32_t i = 0; i < workers; ++i) {
    node.name = "w" + std::to_string(i);
    node.samples_per_second = 250.0 * (1U << (i % 4));
    world.cluster.nodes.push_back(node);
  }
  world.cluster.server_nic = {from_seconds(0.0002), 125e6 * workers, 125e6 * workers};
  const store::TensorPlace all{0, 16384, TensorKind::parameter};
  world.layout = store::cut({&all, 1}, 16384, 1);
  world.chief.epoch_samples = std::uint64_t{samples_per_step} * workers * steps;
  world.chief.total_samples = world.chief.epoch_samples;
  world.chief.evaluate_every = world.chief.epoch_samples;
  world.chief.quorum = workers;
  return world;
}

struct Timed {
  double seconds;
  double events;
};

Timed time_world(const std::string& strategy, std::uint32_t workers, std::uint32_t steps) {
  const std::uint32_t batch = samples_per_step * workers;
  auto made = policy::make_strategy({strategy, {}, {}}, {batch, 0.9});
  check(made.ok(), "benchmarks name strategies that exist");
  const sim::WorldOptions options = timing_world(workers, steps);
  const policy::LrSchedule schedule({}, batch, options.chief.epoch_samples, options.chief.total_samples);
  sim::NoNumbers none;
  trace::Writer trace;  // fingerprinting is part of the cost
  sim::World world(options, std::move(*made), schedule, none, trace);
  const runtime::Stopwatch watch;
  const sim::TrainingOutcome outcome = world.run();
  check(outcome.why == protocol::EndReason::every_sample_counted, "a timing-only simulation counts every sample");
  return {watch.seconds(), static_cast<double>(outcome.events)};
}

double peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024;
}

}  // namespace

boost::json::object bench_sim() {
  boost::json::object out;
  (void)time_world("asp", 100, 200);  // warms caches and the allocator
  const Timed usual = time_world("asp", 100, 5000);
  out["events_per_second"] = usual.events / usual.seconds;
  for (const std::string strategy : {"bsp", "asp"}) {
    double smallest = 0;  // ns per event with 10 workers
    for (const std::uint32_t workers : {10U, 100U, 1000U, 10000U}) {
      const Timed run = time_world(strategy, workers, 1'000'000 / workers);
      const std::string key = strategy + "_" + std::to_string(workers);
      const double cost = run.seconds / run.events * 1e9;
      if (workers == 10) smallest = cost;
      out[key + "_ns_per_event"] = cost;
      // At most 1: the cost per event grows no faster than the logarithm of the number of workers.
      out[key + "_growth_over_logarithm"] = cost / smallest / std::log10(workers);
      if (workers < 10000) continue;
      out[key + "_100_steps_seconds"] = run.seconds;
      out[key + "_100_steps_events"] = run.events;
    }
  }
  out["peak_rss_bytes"] = peak_rss_bytes();
  return out;
}

}  // namespace motley::bench
