// The state of a chief between two updates, as checkpoints store it, and the schedule of evaluations and checkpoints.
#pragma once
#include <cstdint>
#include <optional>

#include "base/ids.h"
#include "base/result.h"
#include "base/time.h"
#include "policy/saved_state.h"
#include "protocol/ledger.h"

namespace motley::protocol {

inline constexpr Duration longest_training{std::int64_t{1} << 60};  // 36 years: sums and differences of such times do not overflow
inline constexpr std::uint32_t most_joins = 1 << 20;                // over all restarts; tables are as long as the greatest worker id

/// All that a restarted chief needs.
struct ChiefState {
  Version version;
  Ledger::Positions counted;
  std::uint64_t next_evaluation{};  // in counted samples
  Version evaluated;                // the newest version for which an evaluation was requested
  WorkerId next_worker;             // worker ids continue after a restart: ids from before it stay fenced
  Duration trained{};               // training time so far
  policy::SavedState strategy;
};

/// Refuses a state that a training of `total` samples cannot have been in, and says which number is wrong.
[[nodiscard]] Outcome check_state(const ChiefState& state, std::uint64_t total, std::uint64_t evaluate_every);

/// Decides when a version is evaluated and when it is saved.
class SnapshotSchedule {
 public:
  /// `evaluate_every` in samples; `checkpoint_every` in updates, 0: no checkpoints.
  SnapshotSchedule(std::uint64_t evaluate_every, std::uint64_t checkpoint_every)
      : evaluate_every_(evaluate_every), checkpoint_every_(checkpoint_every), next_evaluation_(evaluate_every) {}

  [[nodiscard]] bool evaluation_due(std::uint64_t counted) const { return counted >= next_evaluation_; }
  [[nodiscard]] bool checkpoint_due(Version version) const { return checkpoint_every_ > 0 && version.value % checkpoint_every_ == 0; }
  /// Whether one of the next `updates` updates after `version` is saved.
  [[nodiscard]] bool checkpoint_within(std::uint64_t updates, Version version) const {
    return checkpoint_every_ > 0 && checkpoint_every_ - version.value % checkpoint_every_ <= updates;
  }
  [[nodiscard]] bool is_evaluated(Version version) const { return evaluated_ >= version; }
  [[nodiscard]] bool is_saved(Version version) const { return saved_ == version; }
  void evaluated(Version version, std::uint64_t counted);
  void saved(Version version) { saved_ = version; }

  [[nodiscard]] std::uint64_t next_evaluation() const { return next_evaluation_; }
  [[nodiscard]] Version newest_evaluated() const { return evaluated_; }
  void restore(const ChiefState& state);

 private:
  std::uint64_t evaluate_every_;
  std::uint64_t checkpoint_every_;
  std::uint64_t next_evaluation_;
  Version evaluated_;
  std::optional<Version> saved_;
};

}  // namespace motley::protocol
