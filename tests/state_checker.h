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

  void on_event(const Event& event) override {
    std::visit(match{[&](const trace::Ordered& e) { held_[e.worker] = e.version; }, [&](const trace::Dropped& e) { held_.erase(e.worker); },
                     [&](const trace::Left& e) {
                       held_.erase(e.worker);
                       stragglers_.erase(e.worker);
                     },
                     [&](const trace::Contributed& e) {
                       held_.erase(e.worker);
                       weight_stash_[{e.worker, e.step}] = {e.base, stragglers_.contains(e.worker)};
                     },
                     [&](const trace::Cancelled& e) { cancelled(event, e); }, [&](const trace::Discarded& e) { discarded(event, e); },
                     [&](const trace::Straggles& e) { straggles(event, e); }, [&](const trace::Counted& e) { counted(event, e); },
                     [&](const trace::Applied& e) { newest_ = e.version; }, [&](const trace::StateEntered& e) { state(event, e); },
                     [](const auto&) {}},
               event.data);
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
  void state(const Event& event, const trace::StateEntered& e) {
    const std::uint64_t threshold = e.threshold;
    std::uint64_t wanted = 0;
    if (!stragglers_.empty() || gap() > threshold) wanted = 1;
    if (gap() > law_.over_stale_gap) wanted = 2;
    if (e.state != wanted || e.gap != gap() || e.stragglers != stragglers_.size())
      complain(event, fmt::format("state {} with gap {} and {} stragglers", e.state, e.gap, e.stragglers),
               fmt::format("state {} with gap {} and {} stragglers", wanted, gap(), stragglers_.size()));
    if (threshold < law_.least_threshold || threshold > law_.most_threshold || (threshold_ > 0 && threshold + 1 < threshold_) ||
        (threshold_ > 0 && threshold > threshold_ + 1))
      complain(event, fmt::format("threshold {} after {}", threshold, threshold_), "a threshold that moves by one, within its bounds");
    threshold_ = threshold;
    if (e.state < entered_.size() && (state_ != e.state || entered_[e.state] == 0)) ++entered_[e.state];
    state_ = e.state;
  }
  void straggles(const Event& event, const trace::Straggles& e) {
    const bool fresh = e.now ? stragglers_.insert(e.worker).second : stragglers_.erase(e.worker) == 1;
    if (!fresh) complain(event, "an unchanged state", "a change");
    if (!e.now) ++recovered_;
    if (e.now && !held_.contains(e.worker)) complain(event, "a straggler without a step", "a worker that computes");
  }
  void cancelled(const Event& event, const trace::Cancelled& e) {
    ++cancelled_;
    const auto held = held_.find(e.worker);
    if (held == held_.end()) return complain(event, "a cancellation without a step", "a step in progress");
    if (newest_.ahead_of(held->second) <= law_.over_stale_gap)
      complain(event, fmt::format("cancelled {} versions behind", newest_.ahead_of(held->second)), "an over-stale step");
    held_.erase(held);
  }
  void discarded(const Event& event, const trace::Discarded& e) {
    ++discarded_;
    const auto base = weight_stash_.extract({e.worker, e.step});
    if (base.empty()) return complain(event, "discarded without a contribution", "a contribution");
    if (newest_.ahead_of(base.mapped().version) <= law_.over_stale_gap)
      complain(event, fmt::format("discarded {} versions behind", newest_.ahead_of(base.mapped().version)), "an over-stale contribution");
  }
  /// The weight of a late contribution falls with its lateness.
  void counted(const Event& event, const trace::Counted& e) {
    const auto base = weight_stash_.extract({e.worker, e.step});
    if (base.empty() || !base.mapped().late) return;
    const auto late = static_cast<double>(e.staleness);
    double most = static_cast<double>(e.samples) / law_.global_batch;
    if (e.staleness > law_.over_stale_gap) {
      most /= 1 + late;
      ++accepted_;
    } else if (e.staleness > 1) {
      most /= 1 + 0.25 * (late - 1);
      ++softened_;
    }
    if (e.weight > most * (1 + 1e-9))
      complain(event, fmt::format("weight {}, {} versions late", e.weight, e.staleness), fmt::format("at most {}", most));
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
