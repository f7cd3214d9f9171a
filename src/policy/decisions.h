// What a strategy hears and what it answers. Every answer carries its reason; nothing here waits, sends or knows a tensor.
#pragma once
#include <boost/describe.hpp>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/time.h"
#include "policy/spec.h"

namespace motley::policy {

/// A contribution that every server has received whole.
struct Contribution {
  WorkerId worker;
  Step step;
  Version base;  // version of the parameters it was computed at
  std::uint32_t samples{};
  std::uint32_t local_steps{};
  double norm{};                 // Euclidean, of the mean gradient or of the delta
  Duration compute{};            // computing alone
  std::uint32_t ordered{};       // samples that it was to compute at most; more than `samples`: its time was up
  bool limited{};                // its time was limited
  Duration push{};               // from computed until every server had it all
  Duration pull{};               // from its order until the last slice of parameters was there; 0: they were there already
  Bits bits{};                   // that it travelled with
  double loss{};                 // mean over the samples
  double residual{};             // what rounding has kept back of the last one, as a part of it: |e| / |p|
  std::uint32_t most_samples{};  // its worker has found that one step cannot have more; 0: no news
};

enum class Why : std::uint8_t {
  first_order,        // released: it has just joined
  barrier_complete,   // released: everyone of the round has contributed
  on_arrival,         // released: nobody waits here
  within_bound,       // released: not too far ahead of the slowest
  extra_steps,        // released: waiting now would cost more than running a few steps ahead
  slowest_moved,      // released: the slowest has caught up
  work_returned,      // released: somebody's lease came back
  round_in_progress,  // held: joins with the next round
  others_computing,   // held: the round is not complete
  ahead_of_slowest,   // held: as far ahead as the bound allows
  not_finite          // dropped: a value in it is not a number or infinite
};
BOOST_DESCRIBE_ENUM(Why, first_order, barrier_complete, on_arrival, within_bound, extra_steps, slowest_moved, work_returned,
                    round_in_progress, others_computing, ahead_of_slowest, not_finite)
[[nodiscard]] std::string_view sentence(Why why);

/// These contributions make one update together, summed in this order.
struct Apply {
  std::vector<Contribution> members;
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

struct Decisions {
  std::vector<Apply> apply;      // carry out first, in order
  std::vector<Release> release;  // then these, in order
  std::vector<Hold> hold;
  void clear() {
    apply.clear();
    release.clear();
    hold.clear();
  }
};

}  // namespace motley::policy
