// Drives one gate by hand: each call sends the gate one event, orders the workers that it releases and returns its decisions as text.
#pragma once
#include <fmt/format.h>

#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "policy/gate/gate.h"

namespace motley::policy {

/// The word in the code.
inline std::string_view name_of(Why why) { return boost::describe::enum_to_string(why, "?"); }

class GateDriver {
 public:
  explicit GateDriver(std::unique_ptr<Gate> gate) : gate_(std::move(gate)) {}

  /// While false, released workers find no work and idle.
  bool work = true;
  Instant now{};
  Duration expected{};                        // of every order
  std::map<std::uint32_t, Duration> expects;  // of these workers' orders
  std::optional<Instant> wake;                // asked for last

  // Answers: "apply 0 1; test 2; drop 2 (why); cancel 2 (why); release 0 (why), 1 (why); hold 2 (why, gap)", parts that are empty left
  // out. What is applied in another way than by the rule says so: "apply 2 (apart, compensated, *0.8)".
  std::string join(std::initializer_list<std::uint32_t> ids) {
    std::vector<WorkerId> workers;
    for (const std::uint32_t id : ids) {
      workers.push_back({id});
      monitor_.joined({id});
    }
    gate_->joined(now, workers, decisions_);
    return carry_out();
  }
  std::string finish(std::uint32_t id) {
    done_with_a_step(id);
    const Contribution contribution{.worker = {id},
                                    .step = steps_[id],
                                    .base = weight_stash_[id],
                                    .report = {.samples = 1, .squared_norm = 1, .compute = expected_of(id)}};
    monitor_.observe(contribution);
    gate_->contributed(now, contribution, decisions_);
    return carry_out();
  }
  /// At this moment, in milliseconds.
  std::string finish_at(int ms, std::uint32_t id) {
    now = Instant{std::chrono::milliseconds(ms)};
    return finish(id);
  }
  std::string wake_at(int ms) {
    now = Instant{std::chrono::milliseconds(ms)};
    gate_->woken(now, decisions_);
    return carry_out();
  }
  /// The servers' alignment result for this worker's last contribution.
  std::string test_alignment(std::uint32_t id, double alignment) {
    gate_->alignment_known(now, {WorkerId{id}, steps_[id]}, alignment, decisions_);
    return carry_out();
  }
  [[nodiscard]] const Gate& gate() const { return *gate_; }
  std::string leave(std::uint32_t id) {
    busy_.erase(id);
    gate_->left(now, WorkerId{id}, decisions_);
    return carry_out();
  }
  std::string refuse(std::uint32_t id) {
    done_with_a_step(id);
    gate_->refused(now, WorkerId{id}, decisions_);
    return carry_out();
  }

 private:
  void done_with_a_step(std::uint32_t id) {
    check(busy_[id] > 0, "who is done was ordered something");
    --busy_[id];
  }
  [[nodiscard]] Duration expected_of(std::uint32_t id) const {
    const auto own = expects.find(id);
    return own == expects.end() ? expected : own->second;
  }

  static std::string describe(const UpdateOptions& options) {
    std::string text;
    const auto add = [&](const std::string& word) { text += (text.empty() ? "" : ", ") + word; };
    if (options.bypass_momentum) add("apart");
    if (options.compensate) add("compensated");
    if (options.scale != 1) add(fmt::format("*{:.3g}", options.scale));
    return text.empty() ? text : " (" + text + ")";
  }

  std::string carry_out() {
    std::string applied;
    std::string alignment_known;
    std::string dropped;
    std::string cancelled;
    std::string released;
    std::string held;
    for (const Apply& update : decisions_.apply) {
      applied += applied.empty() ? "apply" : " |";
      for (const Contribution& member : update.members) applied += fmt::format(" {}", member.worker.value);
      applied += describe(update.options);
      version_ = version_.next();
      gate_->updated(monitor_);
    }
    for (const AlignmentTest& which : decisions_.test_alignment)
      alignment_known += fmt::format("{} {}", alignment_known.empty() ? "test" : ",", which.worker.value);
    for (const Drop& which : decisions_.drop)
      dropped += fmt::format("{} {} ({})", dropped.empty() ? "drop" : ",", which.worker.value, name_of(which.why));
    for (const Cancel& which : decisions_.cancel) {
      busy_.erase(which.worker.value);
      cancelled += fmt::format("{} {} ({})", cancelled.empty() ? "cancel" : ",", which.worker.value, name_of(which.why));
    }
    // NOLINTNEXTLINE(modernize-loop-convert): the list may grow in the loop
    for (std::size_t i = 0; i < decisions_.release.size(); ++i) {
      const auto [worker, why] = decisions_.release[i];
      released += fmt::format("{} {} ({})", released.empty() ? "release" : ",", worker.value, name_of(why));
      if (work) {
        steps_[worker.value] = steps_[worker.value].next();
        weight_stash_[worker.value] = version_;
        ++busy_[worker.value];
        gate_->ordered(now, worker, expected_of(worker.value));
      } else {
        gate_->idled(now, worker, decisions_);
      }
    }
    for (const Hold& hold : decisions_.hold)
      held += fmt::format("{} {} ({}, {})", held.empty() ? "hold" : ",", hold.worker.value, name_of(hold.why), hold.gap);
    wake = decisions_.wake;
    decisions_.clear();
    std::string answer;
    for (const std::string& part : {applied, alignment_known, dropped, cancelled, released, held})
      if (!part.empty()) answer += (answer.empty() ? "" : "; ") + part;
    return answer;
  }

  std::unique_ptr<Gate> gate_;
  Monitor monitor_;
  Version version_;  // as many as were applied
  std::map<std::uint32_t, Step> steps_;
  std::map<std::uint32_t, Version> weight_stash_;
  std::map<std::uint32_t, std::uint32_t> busy_;  // steps
  Decisions decisions_;
};

}  // namespace motley::policy
