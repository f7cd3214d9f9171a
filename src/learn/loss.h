// Cross-entropy after softmax with its gradient and its hits, as loops over spans of logits. Torch-free.
#pragma once
#include <cstdint>
#include <span>

namespace motley::learn {

struct Score {
  double loss_sum{};     // over the rows: log(sum_c exp(logit_c)) - logit_target
  std::uint64_t hits{};  // rows whose highest logit (the first of equals) is their target
};

/// `logits`: one row of classes for each target; each target names a class.
Score cross_entropy(std::span<const float> logits, std::span<const std::int64_t> targets);

/// Also fills `gradient` (as large as `logits`) with that of the mean loss: (softmax - one at the target) / rows.
Score cross_entropy(std::span<const float> logits, std::span<const std::int64_t> targets, std::span<float> gradient);

}  // namespace motley::learn
