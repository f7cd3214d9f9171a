// A chief in small for tests of strategies: a pool of samples and workers that come, finish, fail and go as the test says. It carries out
// what the strategy decides as the real chief does, and holds every decision against what any strategy owes.
#pragma once
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
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
  };

  SmallChief(Strategy strategy, std::uint64_t pool) : strategy_(std::move(strategy)), pool_(pool) {}

  void pass(Duration duration) { now_ += duration; }

  /// `most_samples`: what one step of each of them may have; 0: no limit.
  void join(std::uint32_t count, std::uint32_t most_samples = 0) {
    std::vector<Newcomer> newcomers;
    for (std::uint32_t i = 0; i < count; ++i) {
      newcomers.push_back({{next_++}, most_samples});
      present_.insert(newcomers.back().worker);
      limits_[newcomers.back().worker] = most_samples;
    }
    strategy_.joined(now_, newcomers, decisions_);
    carry_out();
  }

  void leave(WorkerId worker) {
    present_.erase(worker);
    if (const auto task = busy_.find(worker); task != busy_.end()) {
      pool_ += task->second.samples;
      busy_.erase(task);
    }
    strategy_.left(now_, worker, decisions_);
    carry_out();
  }

  void finish(WorkerId worker) {
    const Task task = busy_.at(worker);
    busy_.erase(worker);
    contributed_.emplace(worker, task.step);
    strategy_.contributed(now_, {worker, task.step, task.base, task.samples, task.local_steps, 1.0, now_ - task.began}, decisions_);
    carry_out();
  }

  void refuse(WorkerId worker) {
    pool_ += busy_.at(worker).samples;
    busy_.erase(worker);
    strategy_.refused(now_, worker, decisions_);
    carry_out();
  }

  [[nodiscard]] const std::set<WorkerId>& present() const { return present_; }
  [[nodiscard]] const std::map<WorkerId, Task>& busy() const { return busy_; }
  [[nodiscard]] const Strategy& strategy() const { return strategy_; }
  [[nodiscard]] std::uint64_t applied_samples() const { return applied_samples_; }
  [[nodiscard]] std::uint64_t greatest_staleness() const { return greatest_staleness_; }
  [[nodiscard]] const std::string& log() const { return log_; }
  /// Of every update so far: the sum of its weights, the sum of its samples.
  [[nodiscard]] const std::vector<std::pair<double, std::uint64_t>>& updates() const { return updates_; }

 private:
  void carry_out() {
    for (const Apply& update : decisions_.apply) apply(update);
    // NOLINTNEXTLINE(modernize-loop-convert): the list may grow on the way
    for (std::size_t i = 0; i < decisions_.release.size(); ++i) order(decisions_.release[i]);
    for (const Hold& hold : decisions_.hold) {
      EXPECT_TRUE(present_.contains(hold.worker)) << "who is held is here";
      EXPECT_FALSE(busy_.contains(hold.worker)) << "who is held has nothing to do";
      log_ += fmt::format("hold w{} {}\n", hold.worker.value, hold.gap);
    }
    decisions_.clear();
    if (!busy_.empty()) return;
    EXPECT_TRUE(present_.empty() || pool_ == 0) << "somebody works while there is work and somebody to do it";
    EXPECT_TRUE(contributed_.empty()) << "when nobody works, nothing that was contributed is left lying";
  }

  void apply(const Apply& update) {
    EXPECT_FALSE(update.members.empty());
    std::vector<double> weights(update.members.size());
    strategy_.weigh(update.members, weights);
    auto& [weight, samples] = updates_.emplace_back();
    for (std::size_t i = 0; i < update.members.size(); ++i) {
      const Contribution& member = update.members[i];
      EXPECT_EQ(contributed_.erase({member.worker, member.step}), 1U) << "what is applied was contributed, and is applied once";
      weight += weights[i];
      samples += member.samples;
      greatest_staleness_ = std::max(greatest_staleness_, version_.ahead_of(member.base));
      log_ += fmt::format("apply w{}/{} {}\n", member.worker.value, member.step.value, weights[i]);
    }
    applied_samples_ += samples;
    version_ = version_.next();
    strategy_.updated();
  }

  void order(const Release& release) {
    const WorkerId worker = release.worker;
    ASSERT_TRUE(present_.contains(worker)) << "who is released is here";
    ASSERT_FALSE(busy_.contains(worker)) << "who is released has nothing to do";
    const Plan plan = strategy_.plan(worker);
    EXPECT_GE(plan.samples, 1U);
    EXPECT_GE(plan.local_steps, 1U);
    const std::uint64_t limit = limits_.at(worker);
    EXPECT_TRUE(limit == 0 || plan.samples <= limit * plan.local_steps) << "a step holds what fits into memory";
    const auto samples = static_cast<std::uint32_t>(std::min<std::uint64_t>(plan.samples, pool_));
    log_ += fmt::format("release w{} {} ({})\n", worker.value, samples, static_cast<int>(release.why));
    if (samples == 0) return strategy_.rested(now_, worker, decisions_);
    pool_ -= samples;
    steps_[worker] = steps_[worker].next();
    busy_[worker] = {steps_[worker], version_, samples, std::min(plan.local_steps, samples), now_};
    strategy_.ordered(now_, worker);
  }

  Strategy strategy_;
  std::uint64_t pool_;
  Instant now_{};
  Version version_;
  std::uint32_t next_ = 0;
  std::set<WorkerId> present_;
  std::map<WorkerId, std::uint32_t> limits_;  // of one step; 0: none
  std::map<WorkerId, Task> busy_;
  std::map<WorkerId, Step> steps_;                   // the last one ordered
  std::set<std::pair<WorkerId, Step>> contributed_;  // and not yet applied
  std::vector<std::pair<double, std::uint64_t>> updates_;
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

/// Nobody new, nobody lost: whoever is here finishes until all is done.
inline void finish_everything(SmallChief& chief, Rng& rng) {
  while (!chief.busy().empty() && !testing::Test::HasFatalFailure()) {
    chief.pass(from_seconds(rng.uniform()));
    chief.finish(any_of(chief.busy(), rng).first);
  }
}

}  // namespace motley::policy
