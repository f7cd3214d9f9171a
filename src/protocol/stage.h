// One stage of a pipeline: which part of which micro-batch it computes next, what it sends, when it updates. Micro-batches come and go in
// order, so counts are all it keeps.
//
//   backward of the oldest, if its gradient is here (and, under gpipe, every forward of its mini-batch is done);
//   else forward of the next, if its input is here, the stage may hold one more and the mini-batch is not too far ahead of the updates;
//   else the gradient of the weights of the oldest that waits for it; at once where the schedule does not set it apart, first where more
//   than two wait.
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
  std::uint64_t mini_batches = 0;        // that it may begin, counted from the beginning of training; see MoreMiniBatches
  std::uint64_t first_mini = 0;          // where it begins
  std::uint64_t micro_batches = no_end;  // of the whole training: the last mini-batch may have fewer (base/batching.h)
};

// What a stage hears. Micro-batch k belongs to mini-batch k / M. --------------------------------------------------------------------

struct StageStarted {};
/// The stage before has sent what this one reads. Never to the first stage.
struct InputHere {
  std::uint64_t micro;
};
/// The stage after has sent the gradient of what this one put out. Never to the last stage.
struct GradientHere {
  std::uint64_t micro;
};
struct PartDone {
  pipeline::Part part;
  std::uint64_t micro;
};
/// So many may be begun now, counted from the beginning of training. Never fewer than before.
struct MoreMiniBatches {
  std::uint64_t mini_batches;
};
using StageEvent = std::variant<StageStarted, InputHere, GradientHere, PartDone, MoreMiniBatches>;

// What it answers -----------------------------------------------------------------------------------------------------------------------

/// Compute this; one at a time. Forward: with the parameters as they are now, `late` updates before those that it is for; they must be kept
/// for the other two parts.
struct RunPart {
  pipeline::Part part{};
  std::uint64_t micro{};
  std::uint32_t late = 0;
};
/// To the next stage.
struct ShipOutput {
  std::uint64_t micro;
};
/// To the stage before.
struct ShipGradient {
  std::uint64_t micro;
};
/// All gradients of this mini-batch are there: update. Before anything else is run.
struct CommitMiniBatch {
  std::uint64_t mini;
};
using StageAction = std::variant<RunPart, ShipOutput, ShipGradient, CommitMiniBatch>;
using StageActions = std::vector<StageAction>;  // carry out in order

class Stage {
 public:
  explicit Stage(StageOptions options);

  /// Total: what is not next in its order changes nothing.
  void step(const StageEvent& event, StageActions& out);

  [[nodiscard]] std::uint64_t committed() const { return weighted_ / options_.schedule.micro_batches + (ends_early(weighted_) ? 1 : 0); }
  /// All that it may begin is committed.
  [[nodiscard]] bool finished() const { return committed() == options_.mini_batches; }
  /// Micro-batches that it keeps something of.
  [[nodiscard]] std::uint64_t kept() const { return begun_ - weighted_; }

 private:
  [[nodiscard]] bool first() const { return options_.stage == 0; }
  [[nodiscard]] bool last() const { return options_.stage + 1 == options_.stages; }
  [[nodiscard]] std::uint64_t end_of(std::uint64_t mini) const {
    return std::min((mini + 1) * options_.schedule.micro_batches, options_.micro_batches);
  }
  /// So many micro-batches are all, and the last mini-batch is smaller than the others.
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
  std::uint64_t inputs_ = 0;     // here
  std::uint64_t gradients_ = 0;  // here
  std::uint64_t begun_ = 0;      // forwards
  std::uint64_t forwarded_ = 0;
  std::uint64_t returned_ = 0;  // input gradients done
  std::uint64_t weighted_ = 0;  // weight gradients done
};

}  // namespace motley::protocol
