// The samples for evaluation: the test samples, or the last tenth of the training samples.
#pragma once
#include <cstddef>
#include <vector>

namespace motley::learn {

enum class EvaluateOn {
  test,       // the data set's own test samples
  validation  // the last tenth of the training samples, which are then not trained on; the test samples are not read
};

/// Removes the last tenth (rounded down) of the items of `all` and returns it. An item is `each` consecutive elements.
template <class Element>
std::vector<Element> take_last_tenth(std::vector<Element>& all, std::size_t each = 1) {
  const std::size_t taken = all.size() / each / 10 * each;
  const auto cut = all.end() - static_cast<std::ptrdiff_t>(taken);
  std::vector<Element> tenth(cut, all.end());
  all.erase(cut, all.end());
  return tenth;
}

}  // namespace motley::learn
