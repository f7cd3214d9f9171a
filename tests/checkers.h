// Checkers of invariants, independent of the code under test: each reads only trace events and reports violations. None knows a strategy, a
// gate or the chief; the permitted limits are passed as numbers.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/match.h"
#include "protocol/chief.h"  // EndReason: the numbers in trace::Finished::why
#include "trace/event.h"

namespace motley::checkers {

using trace::Event;

struct Complaint {
  Instant at{};
  WorkerId worker{};
  Step step{};
  std::string found;
  std::string expected;
};

inline std::ostream& operator<<(std::ostream& out, const Complaint& c) {
  return out << fmt::format("at {:.9f} s, worker {}, step {}: found {}; expected {}", seconds(c.at), c.worker.value, c.step.value, c.found,
                            c.expected);
}

class Checker : public trace::Sink {
 public:
  [[nodiscard]] virtual std::string_view name() const = 0;
  /// Called after the last event.
  virtual void closed() {}
  [[nodiscard]] const std::vector<Complaint>& complaints() const { return complaints_; }

 protected:
  /// Only the first few are kept; later ones usually follow from them.
  void complain(const Event& e, std::string found, std::string expected) {
    constexpr std::size_t most = 8;
    if (complaints_.size() < most)
      complaints_.push_back({e.at, worker_of(e.data).value_or(WorkerId{}), step_of(e), std::move(found), std::move(expected)});
  }

 private:
  static Step step_of(const Event& e) {
    return std::visit(
        [](const auto& data) {
          if constexpr (requires { data.step; })
            return data.step;
          else
            return Step{};
        },
        e.data);
  }
  std::vector<Complaint> complaints_;
};

[[nodiscard]] inline bool ended_complete(const trace::Finished& e) {
  return e.why == static_cast<std::uint8_t>(protocol::EndReason::every_sample_counted);
}

// -----------------------------------------------------------------------------------------------------------------------------------

/// Time never decreases.
class TimeOnlyGrows : public Checker {
 public:
  [[nodiscard]] std::string_view name() const override { return "TimeOnlyGrows"; }
  void on_event(const Event& e) override {
    if (e.at < last_) complain(e, fmt::format("an event {} ns before the previous one", (last_ - e.at).count()), "time that only grows");
    last_ = std::max(last_, e.at);
  }

 private:
  Instant last_{};
};

// -----------------------------------------------------------------------------------------------------------------------------------

/// Updates are numbered 1, 2, 3...; no worker computes on a version that does not exist yet; a worker's parameters never get older; the
/// reported staleness is the true one.
class VersionsOnlyGrow : public Checker {
 public:
  [[nodiscard]] std::string_view name() const override { return "VersionsOnlyGrow"; }
  void on_event(const Event& event) override {
    std::visit(
        match{[&](const trace::Applied& e) {
                if (e.version != version_.next())
                  complain(event, fmt::format("update {}", e.version.value), fmt::format("update {}", version_.value + 1));
                version_ = e.version;
              },
              [&](const trace::Released& e) {
                if (e.version != version_)
                  complain(event, fmt::format("released on version {}", e.version.value), fmt::format("the newest, {}", version_.value));
              },
              [&](const trace::Contributed& e) {
                if (e.base > version_)
                  complain(event, fmt::format("computed on version {}", e.base.value),
                           fmt::format("at most {}, the newest", version_.value));
                Version& newest = newest_base_[e.worker];
                if (e.base < newest)
                  complain(event, fmt::format("computed on version {}", e.base.value), fmt::format("{} or later, as before", newest.value));
                newest = std::max(newest, e.base);
                weight_stash_[{e.worker, e.step}] = e.base;
              },
              [&](const trace::Counted& e) {
                if (e.version != version_.next())
                  complain(event, fmt::format("counted in update {}", e.version.value), fmt::format("in update {}", version_.value + 1));
                const auto base = weight_stash_.find({e.worker, e.step});
                if (base != weight_stash_.end() && e.staleness != version_.ahead_of(base->second))
                  complain(event, fmt::format("staleness {}", e.staleness),
                           fmt::format("{}, from version {} to {}", version_.ahead_of(base->second), base->second.value, version_.value));
              },
              [](const auto&) {}},
        event.data);
  }

 private:
  Version version_;
  std::map<WorkerId, Version> newest_base_;
  std::map<std::pair<WorkerId, Step>, Version> weight_stash_;
};

// -----------------------------------------------------------------------------------------------------------------------------------

/// Limits on the age of a contribution and on how far a worker may be ahead.
///   staleness: most versions that a counted contribution may have missed
///   ahead: no worker is ordered a step while it is more than this many contributions ahead of the slowest worker that has work.
///          A worker that joins, or works again after a rest, starts level with the slowest.
class StalenessBound : public Checker {
 public:
  struct Allowed {
    std::optional<std::uint64_t> staleness;
    std::optional<std::uint64_t> ahead;
  };
  explicit StalenessBound(Allowed allowed) : allowed_(allowed) {}
  [[nodiscard]] std::string_view name() const override { return "StalenessBound"; }
  void on_event(const Event& event) override {
    std::visit(
        match{[&](const trace::Joined& e) { runners_[e.worker].clock = slowest().value_or(0); },
              [&](const trace::Left& e) { runners_.erase(e.worker); }, [&](const trace::Idled& e) { runners_[e.worker].resting = true; },
              [&](const trace::Contributed& e) {
                ++runners_[e.worker].clock;
                weight_stash_[{e.worker, e.step}] = e.base;
              },
              [&](const trace::Ordered& e) { ordered(event, e); }, [&](const trace::Counted& e) { counted(event, e); }, [](const auto&) {}},
        event.data);
  }

 private:
  struct Runner {
    std::uint64_t clock = 0;
    bool resting = false;
  };
  [[nodiscard]] std::optional<std::uint64_t> slowest() const {
    std::optional<std::uint64_t> least;
    for (const auto& [worker, runner] : runners_)
      if (!runner.resting) least = std::min(least.value_or(runner.clock), runner.clock);
    return least;
  }
  void ordered(const Event& event, const trace::Ordered& e) {
    Runner& runner = runners_[e.worker];
    if (runner.resting) {
      runner.clock = slowest().value_or(runner.clock);
      runner.resting = false;
    }
    const std::uint64_t gap = runner.clock - slowest().value_or(runner.clock);
    if (allowed_.ahead && gap > *allowed_.ahead)
      complain(event, fmt::format("ordered a step while {} contributions ahead of the slowest", gap),
               fmt::format("at most {} ahead", *allowed_.ahead));
  }
  void counted(const Event& event, const trace::Counted& e) {
    const auto base = weight_stash_.find({e.worker, e.step});
    if (base == weight_stash_.end()) return;  // FormerMembersFenced and EverySampleOnce report it
    const std::uint64_t missed = e.version.value - 1 - base->second.value;
    if (allowed_.staleness && missed > *allowed_.staleness)
      complain(event, fmt::format("a contribution that missed {} versions", missed), fmt::format("at most {}", *allowed_.staleness));
    weight_stash_.erase(base);
  }

  Allowed allowed_;
  std::map<WorkerId, Runner> runners_;
  std::map<std::pair<WorkerId, Step>, Version> weight_stash_;  // contributed and not yet counted
};

// -----------------------------------------------------------------------------------------------------------------------------------

/// A barrier: no worker is given a step while contributions wait for the end of their round, or while others still compute on an older
/// version.
class RoundsDoNotOverlap : public Checker {
 public:
  [[nodiscard]] std::string_view name() const override { return "RoundsDoNotOverlap"; }
  void on_event(const Event& event) override {
    std::visit(
        match{[&](const trace::Ordered& e) {
                if (waiting_ > 0)
                  complain(event, fmt::format("a step ordered while {} contributions wait for the end of their round", waiting_),
                           "a barrier");
                for (const auto& [worker, version] : working_)
                  if (version != e.version)
                    complain(event, fmt::format("a step ordered while worker {} works on version {}", worker.value, version.value),
                             "a barrier");
                working_[e.worker] = e.version;
              },
              [&](const trace::Contributed& e) {
                working_.erase(e.worker);
                ++waiting_;
              },
              [&](const trace::Dropped& e) { working_.erase(e.worker); }, [&](const trace::Cancelled& e) { working_.erase(e.worker); },
              [&](const trace::Left& e) { working_.erase(e.worker); }, [&](const trace::Counted&) { --waiting_; }, [](const auto&) {}},
        event.data);
  }

 private:
  std::map<WorkerId, Version> working_;
  std::uint64_t waiting_ = 0;  // contributed and not yet counted
};

// -----------------------------------------------------------------------------------------------------------------------------------

/// Each position of each epoch counts exactly once: it is leased when free, and a lease ends counted, dropped, or with its worker.
class EverySampleOnce : public Checker {
 public:
  EverySampleOnce(std::uint64_t epoch_samples, std::uint64_t total) : epoch_samples_(epoch_samples), positions_(total, State::free) {}
  [[nodiscard]] std::string_view name() const override { return "EverySampleOnce"; }
  void on_event(const Event& event) override {
    std::visit(
        match{[&](const trace::Leased& e) { leased(event, e); }, [&](const trace::Contributed& e) { contributed(event, e); },
              [&](const trace::Returned& e) { returned(event, e); }, [&](const trace::Dropped& e) { dropped(event, e, false); },
              [&](const trace::Cancelled& e) { dropped(event, e, false); }, [&](const trace::Discarded& e) { dropped(event, e, true); },
              [&](const trace::Left& e) { left(e); }, [&](const trace::Counted& e) { counted(event, e); },
              [&](const trace::Finished& e) { finished(event, e); }, [](const auto&) {}},
        event.data);
  }

 private:
  enum class State : std::uint8_t { free, leased, counted };
  struct Held {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;  // absolute positions
    bool whole = false;                                           // contributed: stays valid after its worker has left
  };

  void leased(const Event& event, const trace::Leased& e) {
    const std::uint64_t first = e.epoch * epoch_samples_ + e.first;
    const std::uint64_t last = e.epoch * epoch_samples_ + e.last;
    if (e.first >= e.last || e.last > epoch_samples_ || last > positions_.size())
      return complain(event, fmt::format("positions {} to {} of epoch {} leased", e.first, e.last, e.epoch), "a range within the training");
    for (std::uint64_t p = first; p < last; ++p)
      if (positions_[p] != State::free) {
        complain(event,
                 fmt::format("position {} leased while {}", p, positions_[p] == State::leased ? "leased already" : "counted already"),
                 "a free one");
        break;
      }
    std::fill(positions_.begin() + static_cast<std::ptrdiff_t>(first), positions_.begin() + static_cast<std::ptrdiff_t>(last),
              State::leased);
    held_[{e.worker, e.step}].ranges.emplace_back(first, last);
  }
  void contributed(const Event& event, const trace::Contributed& e) {
    const auto held = held_.find({e.worker, e.step});
    if (held == held_.end()) return complain(event, "a contribution without a lease", "a lease that has not ended");
    held->second.whole = true;
  }
  /// The end of a lease, for which there was no time; the rest of it counts.
  void returned(const Event& event, const trace::Returned& e) {
    const auto held = held_.find({e.worker, e.step});
    const std::uint64_t first = e.epoch * epoch_samples_ + e.first;
    const std::uint64_t last = e.epoch * epoch_samples_ + e.last;
    if (held == held_.end() || !held->second.whole)
      return complain(event, "positions returned without a contribution", "one that has arrived");
    for (auto& range : held->second.ranges) {
      if (first < range.first || range.second != last || first >= last) continue;
      std::fill(positions_.begin() + static_cast<std::ptrdiff_t>(first), positions_.begin() + static_cast<std::ptrdiff_t>(last),
                State::free);
      range.second = first;
      return;
    }
    complain(event, fmt::format("positions {} to {} of epoch {} returned", e.first, e.last, e.epoch),
             "the end of one of its leased ranges");
  }
  template <class Step>
  void dropped(const Event& event, const Step& e, bool whole) {
    const auto held = held_.find({e.worker, e.step});
    if (held == held_.end()) return complain(event, "a drop without a lease", "a lease that has not ended");
    if (held->second.whole != whole)
      complain(event, fmt::format("{} of a contribution that has {}arrived", name_of(event.data), whole ? "not " : ""),
               whole ? "a contribution" : "a step in progress");
    end(held, State::free);
  }
  void left(const trace::Left& e) {
    for (auto held = held_.lower_bound({e.worker, Step{}}); held != held_.end() && held->first.first == e.worker;)
      held = held->second.whole ? std::next(held) : end(held, State::free);
  }
  void counted(const Event& event, const trace::Counted& e) {
    const auto held = held_.find({e.worker, e.step});
    if (held == held_.end() || !held->second.whole)
      return complain(event, "counted without a complete contribution", "leased, contributed, then counted once");
    std::uint64_t size = 0;
    for (const auto& [first, last] : held->second.ranges) size += last - first;
    if (size != e.samples) complain(event, fmt::format("{} samples counted", e.samples), fmt::format("the {} that were leased", size));
    end(held, State::counted);
  }
  void finished(const Event& event, const trace::Finished& e) {
    const auto counted = static_cast<std::uint64_t>(std::count(positions_.begin(), positions_.end(), State::counted));
    if (e.samples != counted) complain(event, fmt::format("{} samples reported as counted", e.samples), fmt::format("{}", counted));
    if (ended_complete(e) && counted != positions_.size())
      complain(event, fmt::format("the end after {} samples", counted), fmt::format("all {} counted", positions_.size()));
  }
  using Leases = std::map<std::pair<WorkerId, Step>, Held>;
  Leases::iterator end(Leases::iterator held, State state) {
    for (const auto& [first, last] : held->second.ranges)
      std::fill(positions_.begin() + static_cast<std::ptrdiff_t>(first), positions_.begin() + static_cast<std::ptrdiff_t>(last), state);
    return held_.erase(held);
  }

  std::uint64_t epoch_samples_;
  std::vector<State> positions_;
  Leases held_;
};

// -----------------------------------------------------------------------------------------------------------------------------------

/// Training makes progress while there are members, and ends for a valid reason.
class Liveness : public Checker {
 public:
  struct Patience {
    Duration quiet{};  // longest time in which there are members and none receives, computes or sends
    Duration stage{};  // longest time of one receive, compute or send
    Duration empty{};  // after so long without members, nobody_left is a valid end
  };
  explicit Liveness(Patience patience) : patience_(patience) {}
  [[nodiscard]] std::string_view name() const override { return "Liveness"; }
  void on_event(const Event& event) override {
    if (finished_) return after_the_end(event);
    if (!members_.empty() && busy_ == 0 && event.at - quiet_since_ > patience_.quiet)
      complain(event, fmt::format("{:.3f} s in which no member received, computed or sent", seconds(event.at - quiet_since_)),
               fmt::format("at most {:.3f} s", seconds(patience_.quiet)));
    std::visit(match{[&](const trace::Joined& e) {
                       if (members_.empty()) quiet_since_ = event.at;
                       members_[e.worker] = {};
                     },
                     [&](const trace::Left& e) {
                       turn(event, e.worker, std::nullopt);
                       members_.erase(e.worker);
                       if (members_.empty()) empty_since_ = event.at;
                     },
                     [&](const trace::Released& e) { turn(event, e.worker, "receiving"); },
                     [&](const trace::ComputeBegan& e) { turn(event, e.worker, "computing"); },
                     [&](const trace::ComputeEnded& e) { turn(event, e.worker, "sending"); },
                     [&](const trace::Contributed& e) { turn(event, e.worker, std::nullopt); },
                     [&](const trace::Cancelled& e) { turn(event, e.worker, std::nullopt); },
                     [&](const trace::Dropped& e) { turn(event, e.worker, std::nullopt); },
                     [&](const trace::Finished& e) { finished(event, e); }, [](const auto&) {}},
               event.data);
  }
  void closed() override {
    if (!finished_) complain({}, "a trace that stops", "one that finishes");
  }

 private:
  struct Member {
    std::optional<std::string_view> doing;
    Instant since{};
  };
  void turn(const Event& event, WorkerId worker, std::optional<std::string_view> next) {
    const auto found = members_.find(worker);
    if (found == members_.end()) return;  // a fenced worker that does not know it yet
    Member& member = found->second;
    if (member.doing == "computing" && !event.is<trace::ComputeEnded>() && !event.is<trace::Left>() && !event.is<trace::Cancelled>())
      return;  // hides concurrent transfers
    if (member.doing) {
      --busy_;
      if (event.at - member.since > patience_.stage)
        complain(event, fmt::format("{:.3f} s of {}", seconds(event.at - member.since), *member.doing),
                 fmt::format("at most {:.3f} s", seconds(patience_.stage)));
    }
    if (next) ++busy_;
    if (busy_ == 0) quiet_since_ = event.at;
    member = {next, event.at};
  }
  void finished(const Event& event, const trace::Finished& e) {
    finished_ = true;
    if (ended_complete(e)) return;
    const bool nobody_left = e.why == static_cast<std::uint8_t>(protocol::EndReason::nobody_left);
    if (nobody_left && members_.empty() && event.at - empty_since_ >= patience_.empty) return;
    complain(event, fmt::format("the end, reason {}, with {} members", e.why, members_.size()),
             "every sample counted, or no members for long");
  }
  void after_the_end(const Event& event) {
    const bool in_progress = event.is<trace::ComputeBegan>() || event.is<trace::ComputeEnded>() || event.is<trace::Evaluated>() ||
                             event.is<trace::FaultInjected>();
    if (!in_progress) complain(event, fmt::format("{} after the end", name_of(event.data)), "nothing new");
  }

  Patience patience_;
  std::map<WorkerId, Member> members_;
  std::size_t busy_ = 0;
  Instant quiet_since_{};
  Instant empty_since_{};  // there are no members at the beginning
  bool finished_ = false;
};

// -----------------------------------------------------------------------------------------------------------------------------------

/// Contributions are weighted by samples. Gradients: weight = samples / global batch, so the weights of a whole training sum to its samples
/// over the batch. Models: the weights of each update sum to 1. Clipping may make weights smaller, never larger.
class WeightsSum : public Checker {
 public:
  enum class Of : std::uint8_t { gradients, models };
  struct Law {
    Of of{};
    double global_batch = 1;
    bool clipped = false;
  };
  explicit WeightsSum(Law law) : law_(law) {}
  [[nodiscard]] std::string_view name() const override { return "WeightsSum"; }
  void on_event(const Event& event) override {
    if (const auto* contribution = event.as<trace::Counted>()) {
      if (!(contribution->weight > 0)) complain(event, fmt::format("weight {}", contribution->weight), "a positive weight");
      ++parts_;
      update_.add(*contribution);
      training_.add(*contribution);
    } else if (const auto* update = event.as<trace::Applied>()) {
      if (parts_ != update->parts)
        complain(event, fmt::format("an update of {} parts", update->parts), fmt::format("the {} counted ones", parts_));
      compare(event, update_, "the update's weights");
      update_ = {};
      parts_ = 0;
    } else if (event.is<trace::Finished>() && law_.of == Of::gradients) {
      compare(event, training_, "the training's weights");
    }
  }

 private:
  struct Sum {
    double weight = 0;
    double samples = 0;
    void add(const trace::Counted& e) {
      weight += e.weight;
      samples += static_cast<double>(e.samples);
    }
  };
  void compare(const Event& event, const Sum& sum, std::string_view what) {
    const double lawful = law_.of == Of::gradients ? sum.samples / law_.global_batch : 1.0;
    const double tolerance = 1e-9 * std::max(1.0, lawful);
    if (sum.weight > lawful + tolerance || (!law_.clipped && sum.weight < lawful - tolerance))
      complain(event, fmt::format("{} sum to {}", what, sum.weight), fmt::format("{}{}", law_.clipped ? "at most " : "", lawful));
  }

  Law law_;
  Sum update_;
  Sum training_;
  std::uint64_t parts_ = 0;
};

// -----------------------------------------------------------------------------------------------------------------------------------

/// A former member receives nothing and sends nothing that counts, except contributions that were complete before. Ids are never reused.
class FormerMembersFenced : public Checker {
 public:
  [[nodiscard]] std::string_view name() const override { return "FormerMembersFenced"; }
  void on_event(const Event& event) override {
    std::visit(
        match{[&](const trace::Joined& e) {
                if (!seen_.insert(e.worker).second) complain(event, "an id that joins again", "a new id");
                live_.insert(e.worker);
              },
              [&](const trace::Left& e) {
                if (live_.erase(e.worker) == 0) complain(event, "a worker that leaves without being a member", "a member");
              },
              [&](const trace::Ordered& e) { require_live(event, e.worker); },
              [&](const trace::Leased& e) { require_live(event, e.worker); },
              [&](const trace::Released& e) { require_live(event, e.worker); },
              [&](const trace::Held& e) { require_live(event, e.worker); }, [&](const trace::Idled& e) { require_live(event, e.worker); },
              [&](const trace::Cancelled& e) { require_live(event, e.worker); },
              [&](const trace::Dropped& e) { require_live(event, e.worker); },
              [&](const trace::Contributed& e) {
                require_live(event, e.worker);
                whole_.insert({e.worker, e.step});
              },
              [&](const trace::Counted& e) {
                if (!whole_.contains({e.worker, e.step}))
                  complain(event, "counted without a complete contribution", "a contribution made while its worker was a member");
              },
              [](const auto&) {}},
        event.data);
  }

 private:
  void require_live(const Event& event, WorkerId worker) {
    if (!live_.contains(worker)) complain(event, fmt::format("{} of a worker that is not a member", name_of(event.data)), "a member");
  }
  std::set<WorkerId> live_;
  std::set<WorkerId> seen_;
  std::set<std::pair<WorkerId, Step>> whole_;
};

// -----------------------------------------------------------------------------------------------------------------------------------

/// No step has more samples than its node's memory holds. Local steps divide an order evenly, rounded up.
class WithinMemory : public Checker {
 public:
  /// By node, 0: no limit; empty: no node has a limit.
  explicit WithinMemory(std::vector<std::uint32_t> max_batch) : max_batch_(std::move(max_batch)) {}
  [[nodiscard]] std::string_view name() const override { return "WithinMemory"; }
  void on_event(const Event& event) override {
    if (const auto* joined = event.as<trace::Joined>()) nodes_[joined->worker] = joined->node;
    const auto* order = event.as<trace::Ordered>();
    if (order == nullptr || max_batch_.empty()) return;
    const std::uint64_t node = nodes_[order->worker];
    if (node >= max_batch_.size()) return complain(event, fmt::format("node {}", node), fmt::format("one of {}", max_batch_.size()));
    if (order->local_steps == 0) return complain(event, "an order of no local steps", "at least one");
    const std::uint64_t most = max_batch_[node];
    const std::uint64_t longest = order->samples / order->local_steps + (order->samples % order->local_steps > 0 ? 1 : 0);
    if (most > 0 && longest > most) complain(event, fmt::format("a step of {} samples", longest), fmt::format("at most {}", most));
  }

 private:
  std::vector<std::uint32_t> max_batch_;
  std::map<WorkerId, std::uint64_t> nodes_;
};

}  // namespace motley::checkers
