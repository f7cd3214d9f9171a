// Drives one gate by hand: each call tells the gate one thing, orders whom it releases, and answers with what it decided as short text.
#pragma once
#include <fmt/format.h>

#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "policy/gate.h"

namespace motley::policy {

/// The word in the code.
inline std::string_view name_of(Why why) { return boost::describe::enum_to_string(why, "?"); }

class GateDriver {
 public:
  explicit GateDriver(std::unique_ptr<Gate> gate) : gate_(std::move(gate)) {}

  /// While false, whoever is released finds nothing to do and rests.
  bool work = true;
  Instant now{};
  Duration expected{};  // of every order

  // Answers: "apply 0 1; release 0 (why), 1 (why); hold 2 (why, gap)", parts that are empty left out.
  std::string join(std::initializer_list<std::uint32_t> ids) {
    std::vector<WorkerId> workers;
    for (const std::uint32_t id : ids) workers.push_back({id});
    gate_->joined(now, workers, decisions_);
    return carry_out();
  }
  std::string finish(std::uint32_t id) {
    gate_->contributed(now, {WorkerId{id}, steps_[id], {}, 1, 1, 1.0, {}}, decisions_);
    return carry_out();
  }
  /// At this moment, in milliseconds.
  std::string finish_at(int ms, std::uint32_t id) {
    now = Instant{std::chrono::milliseconds(ms)};
    return finish(id);
  }
  std::string leave(std::uint32_t id) {
    gate_->left(now, WorkerId{id}, decisions_);
    return carry_out();
  }
  std::string refuse(std::uint32_t id) {
    gate_->refused(now, WorkerId{id}, decisions_);
    return carry_out();
  }

 private:
  std::string carry_out() {
    std::string applied;
    std::string released;
    std::string held;
    for (const Apply& update : decisions_.apply) {
      applied += applied.empty() ? "apply" : " |";
      for (const Contribution& member : update.members) applied += fmt::format(" {}", member.worker.value);
    }
    // NOLINTNEXTLINE(modernize-loop-convert): the list may grow on the way
    for (std::size_t i = 0; i < decisions_.release.size(); ++i) {
      const auto [worker, why] = decisions_.release[i];
      released += fmt::format("{} {} ({})", released.empty() ? "release" : ",", worker.value, name_of(why));
      if (work) {
        steps_[worker.value] = steps_[worker.value].next();
        gate_->ordered(now, worker, expected);
      } else {
        gate_->rested(now, worker, decisions_);
      }
    }
    for (const Hold& hold : decisions_.hold)
      held += fmt::format("{} {} ({}, {})", held.empty() ? "hold" : ",", hold.worker.value, name_of(hold.why), hold.gap);
    decisions_.clear();
    std::string answer;
    for (const std::string& part : {applied, released, held})
      if (!part.empty()) answer += (answer.empty() ? "" : "; ") + part;
    return answer;
  }

  std::unique_ptr<Gate> gate_;
  std::map<std::uint32_t, Step> steps_;
  Decisions decisions_;
};

}  // namespace motley::policy
