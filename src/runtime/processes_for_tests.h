// For tests: a chief and its workers over real sockets, in one process and on one event loop.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "runtime/small_cluster_for_tests.h"

namespace motley::runtime {

using transport::fresh_socket;
using transport::run_until;

constexpr transport::Options patient() {
  transport::Options options;
  options.handshake_time = std::chrono::hours(1);  // a busy machine must not fail the test
  return options;
}

/// Opens a gate when a test ends for any reason, so that no thread waits forever.
class Opens {
 public:
  explicit Opens(Gate& gate) : gate_(gate) {}
  ~Opens() { gate_.open(); }
  Opens(const Opens&) = delete;
  Opens& operator=(const Opens&) = delete;

 private:
  Gate& gate_;
};

class Processes : public testing::Test {
 protected:
  void start_chief(const Saved* from = nullptr) {
    chief.reset();
    chief = std::make_unique<SmallChief>(io, job, address, from, options);
  }
  SmallWorker& start_worker(std::uint32_t node_index, Gate* gate = nullptr) {
    workers.push_back(std::make_unique<SmallWorker>(io, job, address, node_index, gate, options));
    return *workers.back();
  }
  void start_all(Gate* gate = nullptr) {
    start_chief();
    for (std::uint32_t n = 0; n < job.quorum; ++n) start_worker(n, gate);
  }

  auto reaches(std::uint64_t version) {
    return run_until(io, [this, version] { return chief->story.version() >= version || chief->over; });
  }
  auto chief_is_over() {
    return run_until(io, [this] { return chief->over.has_value(); });
  }
  auto all_are_over() {
    return run_until(io, [this] {
      return chief->over && std::all_of(workers.begin(), workers.end(), [](const auto& worker) { return worker->over.has_value(); });
    });
  }

  void expect_every_sample_once() const {
    ASSERT_TRUE(chief->over->ok()) << chief->over->error().message;
    const protocol::TrainingOutcome& outcome = **chief->over;
    EXPECT_EQ(outcome.why, protocol::EndReason::every_sample_counted);
    EXPECT_EQ(outcome.samples, job.total_samples);
    EXPECT_EQ(outcome.closed_epochs, job.total_samples / job.epoch_samples);
    EXPECT_EQ(chief->story.times_counted(job), std::vector<int>(job.total_samples, 1));
  }
  void expect_all_good() const {
    for (const auto& worker : workers) EXPECT_TRUE(worker->over->ok()) << worker->over->error().message;
  }

  SmallJob job;
  transport::Options options = patient();
  transport::Address address = fresh_socket();
  boost::asio::io_context io;
  std::unique_ptr<SmallChief> chief;
  std::vector<std::unique_ptr<SmallWorker>> workers;
};

}  // namespace motley::runtime
