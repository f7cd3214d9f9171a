#include "store/staged_model.h"

#include <algorithm>

#include "base/check.h"

namespace motley::store {
namespace {

/// The first `count` values of a stage.
std::vector<float> gathered(const std::vector<float>& model, const StagePlace& place, std::uint64_t count) {
  std::vector<float> own;
  if (model.empty()) return own;
  own.resize(count);
  for (const StagePlace::Piece& piece : place.pieces)
    if (piece.in_stage < count)
      std::copy_n(model.begin() + static_cast<std::ptrdiff_t>(piece.in_model), piece.count,
                  own.begin() + static_cast<std::ptrdiff_t>(piece.in_stage));
  return own;
}

void scatter(const std::vector<float>& own, const StagePlace& place, std::size_t values, std::vector<float>& model) {
  if (own.empty()) return;
  model.resize(values);
  for (const StagePlace::Piece& piece : place.pieces)
    if (piece.in_stage < own.size())
      std::copy_n(own.begin() + static_cast<std::ptrdiff_t>(piece.in_stage), piece.count,
                  model.begin() + static_cast<std::ptrdiff_t>(piece.in_model));
}

}  // namespace

StagePart StagedModel::part(const StagePlace& place) const {
  return {gathered(values, place, place.values), gathered(first, place, place.parameters), gathered(second, place, place.parameters),
          updates};
}

void StagedModel::put(const StagePlace& place, const StagePart& part) {
  check(part.values.size() == place.values, "a stage's part has all its values");
  scatter(part.values, place, values.size(), values);
  scatter(part.first, place, values.size(), first);
  scatter(part.second, place, values.size(), second);
  updates = part.updates;
}

}  // namespace motley::store
