// The model that a server starts from: freshly initialised, or read from a checkpoint.
#pragma once
#include <optional>
#include <vector>

#include "base/ids.h"
#include "store/shard_store.h"

namespace motley::runtime {

struct InitialState {
  std::vector<float> values;  // flat, the whole model
  std::optional<store::Moments> moments;
  Version version;
};

}  // namespace motley::runtime
