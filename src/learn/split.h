// Which samples a model is judged on, and how the last tenth of a training set is cut off for that.
#pragma once
#include <cstddef>
#include <vector>

namespace motley::learn {

enum class EvaluateOn {
  test,       // the data set's own test samples
  validation  // the last tenth of the training samples, which are then not trained on; the test samples are left alone
};

/// Cuts the last tenth (rounded down) of the items off `all` and returns it. An item is `each` consecutive elements.
template <class Element>
std::vector<Element> take_last_tenth(std::vector<Element>& all, std::size_t each = 1) {
  const std::size_t taken = all.size() / each / 10 * each;
  const auto cut = all.end() - static_cast<std::ptrdiff_t>(taken);
  std::vector<Element> tenth(cut, all.end());
  all.erase(cut, all.end());
  return tenth;
}

}  // namespace motley::learn
