// A small chief for tests of strategies: a pool of samples, and workers that join, finish, fail and leave as the test says. It carries out
// decisions as the real chief does and checks each against the guarantees of all strategies.
#pragma once
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "policy/strategies.h"

namespace motley::policy {

class SmallChief {
 public:
  struct Task {
    Step step;
    Version base;
    std::uint32_t samples{};
    std::uint32_t local_steps{};
    Instant began{};
    std::uint32_t spare{};  // of the samples; a limited step has no time for them
  };

  SmallChief(Strategy strategy, std::uint64_t pool) : strategy_(std::move(strategy)), pool_(pool), all_(pool) {}

  /// Time passes: servers answer alignment tests, and a wake-up that is due is delivered.
  void pass(Duration duration) {
    now_ += duration;
    answer();
    if (!wake_ || now_ < *wake_) return;
    wake_.reset();
    strategy_.woken(now_, decisions_);
    carry_out();
  }

  /// `max_batch`: what one step of each of them may have; 0: no limit.
  void join(std::uint32_t count, std::uint32_t max_batch = 0, bool free_transfers = false) {
    std::vector<WorkerProfile> profiles;
    for (std::uint32_t i = 0; i < count; ++i) {
      const double transfer = free_transfers ? 0 : cluster::not_measured;
      profiles.push_back({.worker = {next_++}, .device = {.max_batch = max_batch, .transfer_s_per_byte = transfer}});
      present_.insert(profiles.back().worker);
      limits_[profiles.back().worker] = max_batch;
    }
    strategy_.joined(now_, profiles, decisions_);
    carry_out();
  }

  void leave(WorkerId worker) {
    present_.erase(worker);
    if (const auto tasks = busy_.find(worker); tasks != busy_.end()) {
      for (const Task& task : tasks->second) pool_ += task.samples;
      busy_.erase(tasks);
    }
    strategy_.left(now_, worker, decisions_);
    carry_out();
  }

  void finish(WorkerId worker) {
    const Task task = take(worker);
    contributed_[{worker, task.step}] = task.samples - task.spare;
    pool_ += task.spare;
    const Contribution contribution{.worker = worker,
                                    .step = task.step,
                                    .base = task.base,
                                    .report = {.samples = task.samples - task.spare,
                                               .local_steps = task.local_steps,
                                               .squared_norm = 1,
                                               .compute = now_ - task.began,
                                               .pull = from_seconds(0.01)},
                                    .time_limited = task.spare > 0,
                                    .push = from_seconds(0.01)};
    strategy_.contributed(now_, contribution, decisions_);
    carry_out();
  }

  void refuse(WorkerId worker) {
    pool_ += take(worker).samples;
    strategy_.refused(now_, worker, decisions_);
    carry_out();
  }

  [[nodiscard]] const std::set<WorkerId>& present() const { return present_; }
  [[nodiscard]] const std::map<WorkerId, std::deque<Task>>& busy() const { return busy_; }
  [[nodiscard]] const Strategy& strategy() const { return strategy_; }
  [[nodiscard]] std::uint64_t applied_samples() const { return applied_samples_; }
  [[nodiscard]] std::uint64_t greatest_staleness() const { return greatest_staleness_; }
  [[nodiscard]] const std::string& log() const { return log_; }
  /// Of every update so far: the sum of its weights before any treatment, and the part of a global batch that it is.
  struct Update {
    double weight{};
    double share{};
  };
  [[nodiscard]] const std::vector<Update>& updates() const { return updates_; }

 private:
  Task take(WorkerId worker) {
    const auto tasks = busy_.find(worker);
    const Task task = tasks->second.front();
    tasks->second.pop_front();
    if (tasks->second.empty()) busy_.erase(tasks);
    return task;
  }

  void answer() {
    while (!asked_.empty()) {
      const AlignmentTest which = asked_.front();
      asked_.pop_front();
      strategy_.alignment_known(now_, which, which.step.value % 2 == 0 ? 1 : -1, decisions_);
      carry_out();
    }
  }

  void drop(const Drop& which) {
    const auto samples = contributed_.find({which.worker, which.step});
    ASSERT_NE(samples, contributed_.end()) << "a dropped step was contributed, and is dropped once";
    pool_ += samples->second;
    contributed_.erase(samples);
    log_ += fmt::format("drop w{}/{}\n", which.worker.value, which.step.value);
  }

  void cancel(const Cancel& which) {
    ASSERT_TRUE(busy_.contains(which.worker)) << "a cancelled worker is busy";
    for (const Task& task : busy_.at(which.worker)) pool_ += task.samples;
    busy_.erase(which.worker);
    log_ += fmt::format("cancel w{}\n", which.worker.value);
  }

  void carry_out() {
    for (const Apply& update : decisions_.apply) apply(update);
    for (const AlignmentTest& which : decisions_.test_alignment) asked_.push_back(which);
    for (const Drop& which : decisions_.drop) drop(which);
    for (const Cancel& which : decisions_.cancel) cancel(which);
    if (decisions_.wake) wake_ = decisions_.wake;
    // NOLINTNEXTLINE(modernize-loop-convert): the list may grow in the loop
    for (std::size_t i = 0; i < decisions_.release.size(); ++i) order(decisions_.release[i]);
    for (const Hold& hold : decisions_.hold) {
      EXPECT_TRUE(present_.contains(hold.worker)) << "a held worker is present";
      EXPECT_FALSE(busy_.contains(hold.worker)) << "a held worker is idle";
      log_ += fmt::format("hold w{} {}\n", hold.worker.value, hold.gap);
    }
    decisions_.clear();
    if (busy_.empty()) answer();
    if (!busy_.empty()) return;
    EXPECT_TRUE(present_.empty() || pool_ == 0) << "some worker is busy while there is work and a worker";
    EXPECT_TRUE(contributed_.empty()) << "no contribution is left when no worker is busy";
  }

  void apply(const Apply& update) {
    EXPECT_FALSE(update.members.empty());
    std::vector<double> weights(update.members.size());
    strategy_.weigh(update, weights);
    double weight = 0;
    std::uint64_t samples = 0;
    for (std::size_t i = 0; i < update.members.size(); ++i) {
      const Contribution& member = update.members[i];
      EXPECT_EQ(contributed_.erase({member.worker, member.step}), 1U) << "an applied step was contributed, and is applied once";
      weight += weights[i] / update.options.scale;
      samples += member.report.samples;
      greatest_staleness_ = std::max(greatest_staleness_, version_.ahead_of(member.base));
      log_ += fmt::format("apply w{}/{} {}\n", member.worker.value, member.step.value, weights[i]);
    }
    updates_.push_back({weight, strategy_.share(update)});
    applied_samples_ += samples;
    version_ = version_.next();
    const double progress = static_cast<double>(applied_samples_) / static_cast<double>(all_);
    strategy_.updated(version_, {progress, progress, 1e-3, 0.02});
  }

  void order(const Release& release) {
    const WorkerId worker = release.worker;
    ASSERT_TRUE(present_.contains(worker)) << "a released worker is present";
    ASSERT_TRUE(!busy_.contains(worker) || busy_.at(worker).size() < 2) << "a released worker has at most one step";
    const Plan plan = strategy_.plan(worker);
    EXPECT_GE(plan.samples, 1U);
    EXPECT_GE(plan.local_steps, 1U);
    const std::uint64_t limit = limits_.at(worker);
    EXPECT_TRUE(limit == 0 || plan.samples <= limit * plan.local_steps) << "a step holds what fits into memory";
    EXPECT_TRUE(limit == 0 || plan.samples + plan.time_limit.spare <= limit * plan.local_steps) << "and so do its spare samples";
    const auto samples = static_cast<std::uint32_t>(std::min<std::uint64_t>(plan.samples + plan.time_limit.spare, pool_));
    const std::uint32_t spare = std::min(plan.time_limit.spare, samples - std::min(samples, 1U));
    log_ += fmt::format("release w{} {} ({})\n", worker.value, samples, static_cast<int>(release.why));
    if (samples == 0) return strategy_.idled(now_, worker, decisions_);
    pool_ -= samples;
    steps_[worker] = steps_[worker].next();
    busy_[worker].push_back({steps_[worker], version_, samples, std::min(plan.local_steps, samples), now_, spare});
    strategy_.ordered(now_, worker, samples);
  }

  Strategy strategy_;
  std::uint64_t pool_;
  std::uint64_t all_;
  Instant now_{};
  Version version_;
  std::uint32_t next_ = 0;
  std::set<WorkerId> present_;
  std::map<WorkerId, std::uint32_t> limits_;                        // of one step; 0: none
  std::map<WorkerId, std::deque<Task>> busy_;                       // in order; never empty
  std::map<WorkerId, Step> steps_;                                  // the last one ordered
  std::map<std::pair<WorkerId, Step>, std::uint64_t> contributed_;  // and neither applied nor dropped: samples
  std::vector<Update> updates_;
  std::deque<AlignmentTest> asked_;
  std::optional<Instant> wake_;
  std::uint64_t applied_samples_ = 0;
  std::uint64_t greatest_staleness_ = 0;
  std::string log_;
  Decisions decisions_;
};

/// Any element, as the stream says. Must not be empty.
template <class Container>
auto any_of(const Container& container, Rng& rng) {
  return *std::next(container.begin(), static_cast<std::ptrdiff_t>(rng.below(container.size())));
}

/// All present workers finish their steps until all samples are done.
inline void finish_everything(SmallChief& chief, Rng& rng) {
  while (!chief.busy().empty() && !testing::Test::HasFatalFailure()) {
    chief.pass(from_seconds(rng.uniform()));
    chief.finish(any_of(chief.busy(), rng).first);
  }
}

}  // namespace motley::policy
