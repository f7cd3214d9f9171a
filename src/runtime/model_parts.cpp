#include "runtime/model_parts.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace motley::runtime {
namespace {

std::vector<float>& numbers(store::StagePart& part, wire::StateKind state_kind) {
  return state_kind == wire::StateKind::values ? part.values : state_kind == wire::StateKind::first ? part.first : part.second;
}

}  // namespace

void ModelParts::begin(std::vector<store::StagePlace> places) {
  places_ = std::move(places);
  coming_.clear();
  newest_ = 0;
}

/// Null: it is dropped. Every stage submits one model after the other, so a model that was dropped once can never be whole.
ModelParts::Coming* ModelParts::coming(std::uint64_t mini_batches) {
  if (const auto found = coming_.find(mini_batches); found != coming_.end()) return &found->second;
  if (mini_batches <= newest_) return nullptr;
  newest_ = mini_batches;
  if (coming_.size() >= most_models) coming_.erase(std::prev(coming_.end()));
  Coming& made = coming_[mini_batches];
  made.received.resize(places_.size());
  for (const store::StagePlace& place : places_) {
    store::StagePart& part = *made.parts.emplace_back(std::make_shared<store::StagePart>());
    part.values.resize(place.values);
    part.first.resize(place.parameters);
    if (second_) part.second.resize(place.parameters);
    part.updates = mini_batches;
    made.missing += place.values + (second_ ? 2 : 1) * place.parameters;
  }
  return &made;
}

std::optional<ModelParts::ReceiveBuffer> ModelParts::receive_buffer(const wire::StageSlice& slice, std::size_t bytes) {
  Coming* const model = coming(slice.mini_batches);
  if (model == nullptr) return ReceiveBuffer{};
  std::vector<float>& all = numbers(*model->parts[slice.stage], slice.state_kind);
  const std::uint64_t next = model->received[slice.stage][static_cast<std::size_t>(slice.state_kind)];
  if (slice.offset != next || bytes % sizeof(float) != 0 || bytes / sizeof(float) > all.size() - next) return std::nullopt;
  return ReceiveBuffer{std::span(all).subspan(slice.offset, bytes / sizeof(float)), model->parts[slice.stage]};
}

bool ModelParts::wants(const wire::StageSlice& slice, const ReceiveBuffer& buffer) const {
  const auto found = coming_.find(slice.mini_batches);
  return buffer.keeps && found != coming_.end() && slice.stage < found->second.parts.size() &&
         found->second.parts[slice.stage] == buffer.keeps;
}

bool ModelParts::received(const wire::StageSlice& slice, const ReceiveBuffer& buffer) {
  const auto found = coming_.find(slice.mini_batches);
  Coming& model = found->second;
  model.received[slice.stage][static_cast<std::size_t>(slice.state_kind)] += buffer.values.size();
  model.missing -= buffer.values.size();
  if (model.missing > 0) return false;
  coming_.erase(coming_.begin(), found);
  return true;
}

bool ModelParts::put(std::uint64_t mini_batches, store::StagedModel& model) {
  const auto found = coming_.find(mini_batches);
  if (found == coming_.end() || found->second.missing > 0) return false;
  for (std::size_t s = 0; s < places_.size(); ++s) model.put(places_[s], *found->second.parts[s]);
  model.updates = mini_batches;
  coming_.erase(coming_.begin(), std::next(found));
  return true;
}

}  // namespace motley::runtime
