// The events that a strategy receives and the decisions that it returns. Each decision carries its reason. Values only: nothing here
// waits, sends or holds a tensor.
#pragma once
#include <boost/describe.hpp>
#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/step_report.h"
#include "base/time.h"
#include "policy/spec.h"

namespace motley::policy {

/// A contribution that every server has received whole. The chief has replaced what a worker may not decide in the report: the samples and
/// local steps are those of its order, and `compute` is at least what the chief's own clock allows (policy/credible_compute.h).
struct Contribution {
  WorkerId worker{};
  Step step{};
  Version base{};  // of the parameters it was computed on
  StepReport report;
  bool time_limited = false;  // the step could end before all samples of its lease were done
  Duration push{};            // from the end of the computation until every server had all of it
  Bits bits{};                // with which it was sent and its parameters were
  Instant arrived{};          // when every server had all of it
};

enum class Why : std::uint8_t {
  first_order,         // released: the worker has just joined
  barrier_complete,    // released: all workers of the round have contributed
  on_arrival,          // released: this gate does not wait
  within_bound,        // released: within the bound of the slowest worker
  extra_steps,         // released: waiting now would cost more than running a few steps ahead
  slowest_moved,       // released: the slowest worker has caught up
  work_returned,       // released: a lease was returned to the pool
  round_in_progress,   // held: the worker joins with the next round
  others_computing,    // held: the round is not complete
  ahead_of_slowest,    // held: as far ahead as the bound allows
  not_finite,          // dropped: a value in it is not a number or infinite
  waited_long_enough,  // released: the over-stale contribution did not arrive in time
  over_stale_ahead,    // held: an over-stale contribution is expected soon
  against_momentum,    // dropped: over-stale, and its inner product with the momentum is not positive
  over_stale,          // cancelled: the contribution would be too stale to be useful
  late_and_behind,     // straggles: its step takes longer than the median, and it has fallen behind
  very_late,           // straggles: its step takes far longer than the median
  version_too_old,     // straggles: its base version is older than the threshold allows
  caught_up,           // straggles no more: several steps in a row near the median time
  not_its_turn,        // held: another group's values are being sent
  its_turn             // released: the other group's values were sent
};
BOOST_DESCRIBE_ENUM(Why, first_order, barrier_complete, on_arrival, within_bound, extra_steps, slowest_moved, work_returned,
                    round_in_progress, others_computing, ahead_of_slowest, not_finite, waited_long_enough, over_stale_ahead,
                    against_momentum, over_stale, late_and_behind, very_late, version_too_old, caught_up, not_its_turn, its_turn)
[[nodiscard]] std::string_view sentence(Why why);

/// How the contributions of an update are applied.
struct UpdateOptions {
  bool bypass_momentum = false;  // past the momentum buffer, in which a stale gradient would act for 1/(1-mu) steps
  bool compensate = false;       // for the change of the parameters since its base (delay compensation)
  double scale = 1;              // of the weights that the rule gives
};
/// These contributions make one update together, summed in this order.
struct Apply {
  std::vector<Contribution> members;
  UpdateOptions options{};
};
/// Ask the servers for the inner product of this contribution with the momentum; its sign decides whether the contribution is used.
struct AlignmentTest {
  WorkerId worker;
  Step step;
};
/// This contribution is not used; its samples return to the pool.
struct Drop {
  WorkerId worker;
  Step step;
  Why why{};
};
/// Stop the step that this worker computes; its samples return to the pool.
struct Cancel {
  WorkerId worker;
  Duration so_far{};  // since its order: a lower bound of the step's time
  Why why{};
};
/// The worker may begin its next step, on the newest version.
struct Release {
  WorkerId worker;
  Why why{};
};
/// The worker waits. For the trace: the chief does nothing.
struct Hold {
  WorkerId worker;
  Why why{};
  std::uint64_t gap{};  // steps that it is ahead, or contributions that are missing
};

// Notes are for the trace: the chief does nothing.

/// How far apart the workers are (gate `states`).
enum class State : std::uint8_t { in_step, lagging, over_stale };
BOOST_DESCRIBE_ENUM(State, in_step, lagging, over_stale)
struct StateNow {
  State state{};
  std::uint64_t gap{};        // newest version less the oldest base version in use
  std::uint64_t threshold{};  // of the gap, now
  std::uint64_t stragglers{};
};
struct Straggles {
  WorkerId worker;
  bool now = true;  // false: it straggles no more
  Why why{};
  double times{};  // its step time over the median step time
};
/// From now on this worker synchronises with this group.
struct InGroup {
  WorkerId worker;
  std::uint32_t group{};
  std::uint32_t groups{};  // how many there are
};
using Note = std::variant<StateNow, Straggles, InGroup>;

struct Decisions {
  std::vector<Apply> apply;  // carry out first, in order
  std::vector<AlignmentTest> test_alignment;
  std::vector<Drop> drop;
  std::vector<Cancel> cancel;
  std::vector<Release> release;  // then these, in order
  std::vector<Hold> hold;
  std::vector<Note> note;
  std::optional<Instant> wake;  // call woken() at this time
  void clear() {
    apply.clear();
    test_alignment.clear();
    drop.clear();
    cancel.clear();
    release.clear();
    hold.clear();
    note.clear();
    wake.reset();
  }
};

}  // namespace motley::policy
