// Each row is shifted by its highest logit first, so that no exponential overflows.
#include "learn/loss.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace motley::learn {

namespace {

struct Row {
  float highest{};
  std::int64_t best{};
  float sum{};  // of exp(logit - highest)
};

/// Calls keep(class, exp(logit - highest)) for each class.
template <class Keep>
Row summarise(const float* logits, std::size_t classes, Keep keep) {
  const float* best = std::max_element(logits, logits + classes);
  Row row{*best, best - logits, 0};
  for (std::size_t c = 0; c < classes; ++c) {
    const float e = std::exp(logits[c] - row.highest);
    row.sum += e;
    keep(c, e);
  }
  return row;
}

std::size_t classes_of(std::span<const float> logits, std::span<const std::int64_t> targets) {
  check(!targets.empty() && !logits.empty() && logits.size() % targets.size() == 0, "each target has one row of logits");
  return logits.size() / targets.size();
}

void add(Score& score, const Row& row, float target_logit, std::int64_t target) {
  score.loss_sum += static_cast<double>(std::log(row.sum)) + (static_cast<double>(row.highest) - static_cast<double>(target_logit));
  score.hits += row.best == target ? 1 : 0;
}

}  // namespace

Score cross_entropy(std::span<const float> logits, std::span<const std::int64_t> targets) {
  const std::size_t classes = classes_of(logits, targets);
  Score score;
  for (std::size_t r = 0; r < targets.size(); ++r) {
    const float* row = logits.data() + r * classes;
    add(score, summarise(row, classes, [](std::size_t, float) {}), row[targets[r]], targets[r]);
  }
  return score;
}

Score cross_entropy(std::span<const float> logits, std::span<const std::int64_t> targets, std::span<float> gradient) {
  const std::size_t classes = classes_of(logits, targets);
  check(gradient.size() == logits.size(), "the gradient is as large as the logits");
  const float rows = static_cast<float>(targets.size());
  Score score;
  for (std::size_t r = 0; r < targets.size(); ++r) {
    const float* row = logits.data() + r * classes;
    float* g = gradient.data() + r * classes;
    const Row summary = summarise(row, classes, [g](std::size_t c, float e) { g[c] = e; });
    const float scale = 1 / (summary.sum * rows);
    for (std::size_t c = 0; c < classes; ++c) g[c] *= scale;
    g[targets[r]] -= 1 / rows;
    add(score, summary, row[targets[r]], targets[r]);
  }
  return score;
}

}  // namespace motley::learn
