// Checks straggler states from the trace alone: the expected state follows from the versions that are being computed on, the stragglers and
// the reported threshold; permitted weights, cancellations and discards follow from the lateness of contributions.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "checkers.h"

namespace motley::checkers {

class StatesFollowFromVersions : public Checker {
 public:
  struct Law {
    std::uint64_t over_stale_gap = 16;
    std::uint64_t least_threshold = 2;
    std::uint64_t most_threshold = 8;
    double global_batch = 1;
  };
  explicit StatesFollowFromVersions(const Law& law) : law_(law) {}
  [[nodiscard]] std::string_view name() const override { return "StatesFollowFromVersions"; }

  void on_event(const Event& e) override {
    switch (e.kind) {
      case Kind::ordered: held_[e.worker] = e.version; break;
      case Kind::dropped: held_.erase(e.worker); break;
      case Kind::left:
        held_.erase(e.worker);
        stragglers_.erase(e.worker);
        break;
      case Kind::contributed:
        held_.erase(e.worker);
        weight_stash_[{e.worker, e.step}] = {e.version, stragglers_.contains(e.worker)};
        break;
      case Kind::cancelled: cancelled(e); break;
      case Kind::discarded: discarded(e); break;
      case Kind::straggles: straggles(e); break;
      case Kind::counted: counted(e); break;
      case Kind::applied: newest_ = e.version; break;
      case Kind::state: state(e); break;
      default: break;
    }
  }

  /// The number of times that each state was entered and each rule used.
  [[nodiscard]] std::uint64_t entered(std::size_t state) const { return entered_.at(state); }
  [[nodiscard]] std::uint64_t softened() const { return softened_; }
  [[nodiscard]] std::uint64_t accepted_over_stale() const { return accepted_; }
  [[nodiscard]] std::uint64_t discarded() const { return discarded_; }
  [[nodiscard]] std::uint64_t cancelled() const { return cancelled_; }
  [[nodiscard]] std::uint64_t recovered() const { return recovered_; }

 private:
  struct Base {
    Version version;
    bool late = false;  // its worker was a straggler when it arrived
  };
  [[nodiscard]] std::uint64_t gap() const {
    std::uint64_t widest = 0;
    for (const auto& [worker, version] : held_) widest = std::max(widest, newest_.ahead_of(version));
    return widest;
  }
  void state(const Event& e) {
    const auto threshold = static_cast<std::uint64_t>(e.value);
    std::uint64_t wanted = 0;
    if (!stragglers_.empty() || gap() > threshold) wanted = 1;
    if (gap() > law_.over_stale_gap) wanted = 2;
    if (e.first != wanted || e.last != gap() || static_cast<std::uint64_t>(e.second) != stragglers_.size())
      complain(e, fmt::format("state {} with gap {} and {} stragglers", e.first, e.last, e.second),
               fmt::format("state {} with gap {} and {} stragglers", wanted, gap(), stragglers_.size()));
    if (threshold < law_.least_threshold || threshold > law_.most_threshold || (threshold_ > 0 && threshold + 1 < threshold_) ||
        (threshold_ > 0 && threshold > threshold_ + 1))
      complain(e, fmt::format("threshold {} after {}", threshold, threshold_), "a threshold that moves by one, within its bounds");
    threshold_ = threshold;
    if (e.first < entered_.size() && (state_ != e.first || entered_[e.first] == 0)) ++entered_[e.first];
    state_ = e.first;
  }
  void straggles(const Event& e) {
    const bool fresh = e.first == 1 ? stragglers_.insert(e.worker).second : stragglers_.erase(e.worker) == 1;
    if (!fresh) complain(e, "an unchanged state", "a change");
    if (e.first == 0) ++recovered_;
    if (e.first == 1 && !held_.contains(e.worker)) complain(e, "a straggler without a step", "a worker that computes");
  }
  void cancelled(const Event& e) {
    ++cancelled_;
    const auto held = held_.find(e.worker);
    if (held == held_.end()) return complain(e, "a cancellation without a step", "a step in progress");
    if (newest_.ahead_of(held->second) <= law_.over_stale_gap)
      complain(e, fmt::format("cancelled {} versions behind", newest_.ahead_of(held->second)), "an over-stale step");
    held_.erase(held);
  }
  void discarded(const Event& e) {
    ++discarded_;
    const auto base = weight_stash_.extract({e.worker, e.step});
    if (base.empty()) return complain(e, "discarded without a contribution", "a contribution");
    if (newest_.ahead_of(base.mapped().version) <= law_.over_stale_gap)
      complain(e, fmt::format("discarded {} versions behind", newest_.ahead_of(base.mapped().version)), "an over-stale contribution");
  }
  /// The weight of a late contribution is reduced by its lateness.
  void counted(const Event& e) {
    const auto base = weight_stash_.extract({e.worker, e.step});
    if (base.empty() || !base.mapped().late) return;
    const auto late = static_cast<double>(e.last);
    double most = static_cast<double>(e.first) / law_.global_batch;
    if (e.last > law_.over_stale_gap) {
      most /= 1 + late;
      ++accepted_;
    } else if (e.last > 1) {
      most /= 1 + 0.25 * (late - 1);
      ++softened_;
    }
    if (e.value > most * (1 + 1e-9))
      complain(e, fmt::format("weight {}, {} versions late", e.value, e.last), fmt::format("at most {}", most));
  }

  Law law_;
  Version newest_;
  std::map<WorkerId, Version> held_;  // the versions of steps in progress
  std::set<WorkerId> stragglers_;
  std::map<std::pair<WorkerId, Step>, Base> weight_stash_;  // contributed, neither counted nor discarded
  std::uint64_t threshold_ = 0;
  std::uint64_t state_ = 0;
  std::array<std::uint64_t, 3> entered_{};
  std::uint64_t softened_ = 0, accepted_ = 0, discarded_ = 0, cancelled_ = 0, recovered_ = 0;
};

}  // namespace motley::checkers
