#include "protocol/stage.h"

#include <algorithm>
#include <utility>

#include "base/match.h"

namespace motley::protocol {

using pipeline::Part;

Stage::Stage(StageOptions options) : options_(std::move(options)) {
  inputs_ = gradients_ = begun_ = forwarded_ = returned_ = weighted_ = options_.first_mini * options_.schedule.micro_batches;
}

void Stage::step(const StageEvent& event, StageActions& out) {
  std::visit(match{[&](const StageStarted&) { started_ = true; },
                   [&](const InputHere& e) {
                     if (!first() && e.micro == inputs_) ++inputs_;
                   },
                   [&](const GradientHere& e) {
                     if (!last() && e.micro == gradients_) ++gradients_;
                   },
                   [&](const PartDone& e) { done(e, out); },
                   [&](const MoreMiniBatches& e) { options_.mini_batches = std::max(options_.mini_batches, e.mini_batches); }},
             event);
  go_on(out);
}

void Stage::done(const PartDone& part, StageActions& out) {
  if (!running_ || running_->part != part.part || running_->micro != part.micro) return;
  running_.reset();
  const std::uint64_t micros = options_.schedule.micro_batches;
  switch (part.part) {
    case Part::forward:
      ++forwarded_;
      if (last())
        ++gradients_;  // the gradient of the loss
      else
        out.emplace_back(ShipOutput{part.micro});
      break;
    case Part::input:
      ++returned_;
      if (!first()) out.emplace_back(ShipGradient{part.micro});
      break;
    case Part::weight:
      ++weighted_;
      if (weighted_ % micros == 0 || ends_early(weighted_)) out.emplace_back(CommitMiniBatch{committed() - 1});
      break;
  }
}

bool Stage::may_go_backward() const {
  if (returned_ >= gradients_) return false;
  const std::uint64_t micros = options_.schedule.micro_batches;
  return !options_.schedule.forwards_first || forwarded_ >= end_of(returned_ / micros);
}

bool Stage::may_go_forward() const {
  if (begun_ >= all() || (!first() && begun_ >= inputs_)) return false;
  if (begun_ - returned_ >= options_.schedule.max_in_flight[options_.stage]) return false;
  return begun_ / options_.schedule.micro_batches <= committed() + options_.schedule.ahead;
}

bool Stage::must_weigh() const {
  constexpr std::uint64_t most_waiting = 2;
  return returned_ - weighted_ > (options_.schedule.defers_weight_gradients ? most_waiting : 0);
}

void Stage::go_on(StageActions& out) {
  if (!started_ || running_) return;
  if (must_weigh())
    run(Part::weight, weighted_, 0, out);
  else if (may_go_backward())
    run(Part::input, returned_, 0, out);
  else if (may_go_forward())
    run(Part::forward, begun_, static_cast<std::uint32_t>(begun_ / options_.schedule.micro_batches - committed()), out);
  else if (returned_ > weighted_)
    run(Part::weight, weighted_, 0, out);
}

void Stage::run(Part part, std::uint64_t micro, std::uint32_t late, StageActions& out) {
  if (part == Part::forward) ++begun_;
  running_ = RunPart{part, micro, late};
  out.emplace_back(*running_);
}

}  // namespace motley::protocol
