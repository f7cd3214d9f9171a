// What a strategy hears and what it answers. Every answer carries its reason; nothing here waits, sends or knows a tensor.
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
  first_order,         // released: it has just joined
  barrier_complete,    // released: everyone of the round has contributed
  on_arrival,          // released: nobody waits here
  within_bound,        // released: not too far ahead of the slowest
  extra_steps,         // released: waiting now would cost more than running a few steps ahead
  slowest_moved,       // released: the slowest has caught up
  work_returned,       // released: somebody's lease came back
  round_in_progress,   // held: joins with the next round
  others_computing,    // held: the round is not complete
  ahead_of_slowest,    // held: as far ahead as the bound allows
  not_finite,          // dropped: a value in it is not a number or infinite
  waited_long_enough,  // released: the over-stale has not come, and nobody waits for it any longer
  over_stale_ahead,    // held: somebody over-stale is expected any moment
  against_momentum,    // dropped: over-stale, and it points against the way the model goes
  over_stale,          // cancelled: it would come too late to be of use
  late_and_behind,     // straggles: its step takes longer than the others', and it has fallen behind
  very_late,           // straggles: its step takes far longer than the others'
  version_too_old,     // straggles: what it computes on is older than the threshold allows
  caught_up,           // straggles no more: several steps in a row in the others' time
  not_its_turn,        // held: another group's values travel now
  its_turn             // released: the other group's are through
};
BOOST_DESCRIBE_ENUM(Why, first_order, barrier_complete, on_arrival, within_bound, extra_steps, slowest_moved, work_returned,
                    round_in_progress, others_computing, ahead_of_slowest, not_finite, waited_long_enough, over_stale_ahead,
                    against_momentum, over_stale, late_and_behind, very_late, version_too_old, caught_up, not_its_turn, its_turn)
[[nodiscard]] std::string_view sentence(Why why);

/// How an update is made of its contributions.
struct UpdateOptions {
  bool bypass_momentum = false;  // outside the momentum buffer: a stale direction in there would live on for 1/(1-mu) steps
  bool compensate = false;       // for what has changed since its base (delay compensation)
  double scale = 1;              // of the weights that the rule gives
};
/// These contributions make one update together, summed in this order.
struct Apply {
  std::vector<Contribution> members;
  UpdateOptions options{};
};
/// Ask the servers whether this contribution goes the way of the momentum; the answer decides what becomes of it.
struct AlignmentTest {
  WorkerId worker;
  Step step;
};
/// This contribution is not to be used; its samples go back to the pool.
struct Drop {
  WorkerId worker;
  Step step;
  Why why{};
};
/// Stop what this worker computes; its samples go back to the pool.
struct Cancel {
  WorkerId worker;
  Duration so_far{};  // since its order: it takes at least that long
  Why why{};
};
/// May begin its next step on the newest version.
struct Release {
  WorkerId worker;
  Why why{};
};
/// Must wait; told for the report, nothing is to be done.
struct Hold {
  WorkerId worker;
  Why why{};
  std::uint64_t gap{};  // how many steps ahead, or how many are missing
};

// Told for the report and for whoever checks; nothing is to be done.

/// How far apart the workers are (gate `states`).
enum class State : std::uint8_t { in_step, lagging, over_stale };
BOOST_DESCRIBE_ENUM(State, in_step, lagging, over_stale)
struct StateNow {
  State state{};
  std::uint64_t gap{};        // newest version less the oldest that is being computed on
  std::uint64_t threshold{};  // of the gap, now
  std::uint64_t stragglers{};
};
struct Straggles {
  WorkerId worker;
  bool now = true;  // false: no more
  Why why{};
  double times{};  // the median step, that its own takes
};
/// This worker synchronises with those of this group from now on.
struct InGroup {
  WorkerId worker;
  std::uint32_t group{};
  std::uint32_t groups{};  // that there are
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
  std::optional<Instant> wake;  // look again then, should nothing have happened
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
