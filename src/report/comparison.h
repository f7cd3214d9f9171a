// The content of a report as plain data: several strategies on one job. Filled by engine, drawn by table, charts and page.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/state_timelines.h"

namespace motley::report {

/// The phase of a worker.
enum class Phase { compute, send, wait, receive };

struct Span {
  double begin_s{};
  double end_s{};
  Phase phase{};
};

/// The phases of one worker over time.
struct Lane {
  std::string worker;
  std::vector<Span> spans;
};

/// One evaluation of the global model.
struct Point {
  double time_s{};
  double samples{};
  double accuracy{};
  double loss{};
};

/// Samples and bits of one worker's steps over time.
struct WorkerHistory {
  struct Share {
    double time_s{};
    double samples{};
    double push_bits{};
    double pull_bits{};
    double local_steps = 1;
  };
  std::string worker;
  std::vector<Share> shares;
};

/// How far apart the workers of one update finished.
struct Finish {
  double time_s{};
  double spread_s{};
};

/// Figures of a pipeline, means over the seeds.
struct PipelineRow {
  double steady_samples_per_second{};  // in the middle half of the run
  double ratio_to_ideal{};             // of what the slowest stage or link allows
  double utilization{};
  double bubble_share{};
  double busiest{};
  double peak_stash_bytes{};
  double planned_stash_bytes{};
  double max_delay{};  // the largest
  /// One part of one micro-batch on one stage, of the first seed.
  struct Box {
    std::uint32_t stage{};
    double begin_s{};
    double end_s{};
    std::uint8_t part{};  // 0 forward, 1 input gradient, 2 weight gradient
  };
  std::vector<Box> boxes;
  std::vector<std::string> stages;  // names of their nodes
};

/// One strategy over all seeds.
struct Row {
  std::string strategy;                    // as the user wrote it, overrides included
  std::vector<std::vector<Point>> curves;  // per seed
  std::vector<Point> mean_curve;           // over the seeds, smoothed over 3 evaluations
  std::optional<double> time_to_target_s;  // of the mean curve; absent: not reached
  std::vector<std::optional<double>> time_to_target_per_seed;
  double final_accuracy_mean{};
  double final_accuracy_std{};
  double samples_per_second{};
  double sum_of_parts_samples_per_second{};
  double bytes_total{};
  double wait_share{};
  double exposed_comm_share{};
  double overlap_ratio{};
  std::optional<double> speedup_vs_bsp;  // absent: one of the two did not reach the target, or bsp is not in the table
  std::optional<double> speedup_vs_lb_bsp;
  std::vector<Lane> timeline;            // of the first seed, a window of a few steps
  std::vector<WorkerHistory> histories;  // of the first seed
  std::vector<Finish> finishes;          // of the first seed
  double returned_samples{};             // of the first seed: there was no time for them, others did them
  double samples{};                      // of the first seed
  std::vector<std::uint64_t> staleness;  // histogram of the first seed: [k] = contributions applied k versions late
  States states;                         // of the first seed; empty: its strategy has none
  Groups groups;                         // likewise
  std::optional<PipelineRow> pipeline;   // absent: data parallel
};

struct Comparison {
  std::string job;                        // its name
  std::string command;                    // that makes this table again
  std::optional<double> target_accuracy;  // absent: no target was set, nobody can reach it
  std::vector<std::uint64_t> seeds;
  std::vector<std::string> workers;  // "fast-1: 1000 samples/s, 2 ms overhead, 135 MB/s"
  std::vector<std::string> network;  // "2 servers, each 269 MB/s", "group rack: 125 MB/s"
  std::vector<std::string> faults;   // "at 10 s fast-2 runs 4 times slower for 8 s"; in order of time
  std::vector<Row> rows;
};

}  // namespace motley::report
