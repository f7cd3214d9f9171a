#include "learn/torch/parameter_upload.h"

#include <c10/core/GradMode.h>

#include <utility>

#include "base/bits.h"
#include "base/time.h"

namespace motley::learn {

ParameterUpload::ParameterUpload(DeviceModel& model)
    : model_(model),
      host_to_device_(model.lanes(), model.shape().values(), model.device()),
      codec_(model.device()),
      wanted_(model.blocks() + 1),
      present_(model.blocks() + 1) {}

void ParameterUpload::begin() {
  last_taken_.reset();
  pending_ = {};
}

bool ParameterUpload::upload(std::size_t block, std::span<const float> values, StepIo& io) {
  const auto [first, last] = model_.range(block);
  if (first == last) return true;
  wanted_[block].set(model_.lanes(), Lane::compute);
  if (!io.wait_for(first, last)) return false;
  if (!io.take(first, last, [&](const IncomingValues& incoming) { take(incoming); })) {
    pending_first_ = first;
    pending_ = values.subspan(first, last - first);
  }
  copy_pending();
  host_to_device_.join();
  present_[block].set(model_.lanes(), Lane::in);
  return true;
}

void ParameterUpload::report_stalls(StepIo& io) {
  if (!TimedMark::records_time || model_.lanes().none()) return;
  double stalled = 0;
  for (std::size_t block = 0; block < wanted_.size(); ++block) {
    if (model_.range(block).first == model_.range(block).last) continue;
    wanted_[block].wait();
    present_[block].wait();
    stalled += wanted_[block].seconds_until(present_[block]);
  }
  io.stalled(from_seconds(stalled));
}

void ParameterUpload::take(const IncomingValues& incoming) {
  const c10::AutoGradMode graph(false);
  const bool again = std::exchange(last_taken_, incoming.first) == incoming.first;  // its place in the staging buffer is in use
  const bool plain = incoming.bits == fp32_bits;
  const std::span<const float> values(reinterpret_cast<const float*>(incoming.bytes.data()), plain ? incoming.count : 0);
  const bool adjacent =
      plain && !again && incoming.first == pending_first_ + pending_.size() && values.data() == pending_.data() + pending_.size();
  if (adjacent) {
    pending_ = {pending_.data(), pending_.size() + values.size()};
    return;
  }
  copy_pending();
  if (again) model_.lanes().settle();
  pending_first_ = incoming.first;
  pending_ = values;
  if (plain) return;
  const DeviceModel::Range range{incoming.first, incoming.first + incoming.count};
  model_.expect(range, incoming.rounded);
  if (incoming.rounded) return host_to_device_.take(incoming.first, incoming.bytes, model_.rounded());
  const at::Tensor bytes = host_to_device_.take_bytes(incoming.first, incoming.bytes);
  part(model_.values(), range.first, range.last).add_(codec_.decode(bytes, incoming.bits, static_cast<std::int64_t>(incoming.count)));
}

void ParameterUpload::copy_pending() {
  if (pending_.empty()) return;
  model_.expect({pending_first_, pending_first_ + pending_.size()}, /*rounded=*/false);
  host_to_device_.take(pending_first_, std::as_bytes(pending_), model_.values());
  pending_ = {};
}

}  // namespace motley::learn
