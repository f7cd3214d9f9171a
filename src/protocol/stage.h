// The protocol of one pipeline stage: which part of which micro-batch it computes next, what it sends, and when it updates. Micro-batches
// arrive in order, so it keeps counts only. Priorities:
//
//   1. backward of the oldest micro-batch, if its gradient has arrived (and, under gpipe, every forward of its mini-batch is done)
//   2. forward of the next, if its input has arrived, the stage may hold one more, and its mini-batch is not too far ahead of the updates
//   3. weight gradient of the oldest that waits for it: at once unless the schedule separates it, and first when more than two wait
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "base/batching.h"
#include "pipeline/schedule.h"

namespace motley::protocol {

struct StageOptions {
  pipeline::Schedule schedule;
  std::uint32_t stage = 0;
  std::uint32_t stages = 1;
  std::uint64_t mini_batches = 0;        // permitted mini-batches, counted from the beginning of training; see MoreMiniBatches
  std::uint64_t first_mini = 0;          // the first one
  std::uint64_t micro_batches = no_end;  // of the whole training: the last mini-batch may have fewer (base/batching.h)
};

// Events of a stage. Micro-batch k belongs to mini-batch k / M. -------------------------------------------------------------------

struct StageStarted {};
/// The previous stage has sent the input. Never for the first stage.
struct InputHere {
  std::uint64_t micro;
};
/// The next stage has sent the gradient of the output. Never for the last stage.
struct GradientHere {
  std::uint64_t micro;
};
struct PartDone {
  pipeline::Part part;
  std::uint64_t micro;
};
/// So many mini-batches are permitted, counted from the beginning of training. Never fewer than before.
struct MoreMiniBatches {
  std::uint64_t mini_batches;
};
using StageEvent = std::variant<StageStarted, InputHere, GradientHere, PartDone, MoreMiniBatches>;

// Actions of a stage -------------------------------------------------------------------------------------------------------------------

/// Compute this part; one at a time. Forward: with the present parameters, which lack `late` updates; they must be kept for the other two
/// parts.
struct RunPart {
  pipeline::Part part{};
  std::uint64_t micro{};
  std::uint32_t late = 0;
};
/// To the next stage.
struct ShipOutput {
  std::uint64_t micro;
};
/// To the previous stage.
struct ShipGradient {
  std::uint64_t micro;
};
/// All gradients of this mini-batch are computed: update, before any other part runs.
struct CommitMiniBatch {
  std::uint64_t mini;
};
using StageAction = std::variant<RunPart, ShipOutput, ShipGradient, CommitMiniBatch>;
using StageActions = std::vector<StageAction>;  // carry out in order

class Stage {
 public:
  explicit Stage(StageOptions options);

  /// Total: an event out of order changes nothing.
  void step(const StageEvent& event, StageActions& out);

  [[nodiscard]] std::uint64_t committed() const { return weighted_ / options_.schedule.micro_batches + (ends_early(weighted_) ? 1 : 0); }
  /// All permitted mini-batches are committed.
  [[nodiscard]] bool finished() const { return committed() == options_.mini_batches; }
  /// Micro-batches of which it keeps data.
  [[nodiscard]] std::uint64_t kept() const { return begun_ - weighted_; }

 private:
  [[nodiscard]] bool first() const { return options_.stage == 0; }
  [[nodiscard]] bool last() const { return options_.stage + 1 == options_.stages; }
  [[nodiscard]] std::uint64_t end_of(std::uint64_t mini) const {
    return std::min((mini + 1) * options_.schedule.micro_batches, options_.micro_batches);
  }
  /// Training ends after so many micro-batches, with a smaller last mini-batch.
  [[nodiscard]] bool ends_early(std::uint64_t micros) const {
    return micros == options_.micro_batches && micros % options_.schedule.micro_batches != 0;
  }
  [[nodiscard]] std::uint64_t all() const { return options_.mini_batches == 0 ? 0 : end_of(options_.mini_batches - 1); }
  void done(const PartDone& part, StageActions& out);
  void go_on(StageActions& out);
  [[nodiscard]] bool may_go_forward() const;
  [[nodiscard]] bool may_go_backward() const;
  [[nodiscard]] bool must_weigh() const;
  void run(pipeline::Part part, std::uint64_t micro, std::uint32_t late, StageActions& out);

  StageOptions options_;
  bool started_ = false;
  std::optional<RunPart> running_;
  std::uint64_t inputs_ = 0;     // arrived
  std::uint64_t gradients_ = 0;  // arrived
  std::uint64_t begun_ = 0;      // forwards
  std::uint64_t forwarded_ = 0;
  std::uint64_t returned_ = 0;  // input gradients done
  std::uint64_t weighted_ = 0;  // weight gradients done
};

}  // namespace motley::protocol
