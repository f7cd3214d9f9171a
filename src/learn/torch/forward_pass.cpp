#include "learn/torch/forward_pass.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "learn/constants.h"

namespace motley::learn {

ForwardPass::ForwardPass(DeviceModel& model, DeviceSamples& samples, ParameterUpload& upload)
    : model_(model), samples_(samples), upload_(upload) {}

std::optional<ForwardPass::Output> ForwardPass::run(std::span<const float> values, std::span<const std::uint32_t> samples, StepIo& io) {
  if (!begun_ || begun_->id != io.id() || begun_->id == 0) {
    drop();
    if (!begin(io.id(), values, samples, io)) return std::nullopt;
  }
  if (!advance(model_.blocks(), io)) return std::nullopt;
  const at::Tensor logits = begun_->passing.x.detach();
  return Output{logits, std::exchange(begun_, std::nullopt)->batch};
}

void ForwardPass::restore_statistics() {
  model_.rewind();
  statistics_restored_.set(model_.lanes(), Lane::compute);
  restored_ = true;
}

void ForwardPass::gather_next(StepIo& io) {
  const std::span<const std::uint32_t> next = io.likely_next_samples();
  if (next.empty()) return;
  const auto guard = model_.lanes().on(Lane::in);
  try {
    samples_.gather_ahead(next);
  } catch (const std::exception&) {  // the step that needs them gathers them again
  }
  samples_gathered_.set(model_.lanes(), Lane::in);
}

void ForwardPass::begin_next(StepIo& io) {
  if (begun_) return;
  const std::optional<NextStep> next = io.next_step();
  if (!next || next->id == failed_id_ || !samples_.at_hand(next->samples)) return;
  const auto arrived = [&](std::size_t block) { return next->io->wait_for(model_.range(block).first, model_.range(block).last); };
  if (!arrived(model_.blocks()) || !arrived(0)) return;
  std::size_t until = 1;
  while (until < std::min(blocks_begun_early, model_.blocks()) && arrived(until)) ++until;
  const auto guard = model_.lanes().on(Lane::compute);
  try {
    if (!begin(next->id, next->values, next->samples, *next->io) || !advance(until, *next->io)) drop();
  } catch (const std::exception&) {  // the step itself will fail in the same way and report it
    abandon();
    failed_id_ = next->id;
  }
}

bool ForwardPass::upload_statistics(std::span<const float> values, StepIo& io) {
  statistics_restored_.hold_if_set(model_.lanes(), Lane::in);
  return upload_.upload(model_.blocks(), values, io);
}

void ForwardPass::drop() {
  if (begun_) abandon();
}

void ForwardPass::abandon() {
  begun_.reset();
  model_.forget();
  model_.lanes().settle();
}

bool ForwardPass::begin(std::uint64_t id, std::span<const float> values, std::span<const std::uint32_t> samples, StepIo& io) {
  if (!restored_) restore_statistics();  // the step before was abandoned
  upload_.begin();
  samples_gathered_.hold_if_set(model_.lanes(), Lane::compute);
  const DeviceSamples::Gathered batch = samples_.gather(Part::training, samples);
  if (!upload_statistics(values, io)) return false;
  begun_ = Begun{id, values, batch, model_.begin(batch.inputs, Mode::training)};
  restored_ = false;
  return true;
}

bool ForwardPass::advance(std::size_t until, StepIo& io) {
  Begun& step = *begun_;
  return model_.pass(step.passing, Mode::training, until, [&](std::size_t block) { return upload_.upload(block, step.values, io); });
}

}  // namespace motley::learn
