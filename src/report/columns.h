// The columns of a comparison's table, shared by its three writers: terminal, Markdown and page.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "report/comparison.h"

namespace motley::report {

/// One figure, and in `aside` what qualifies it (a spread, a share); either plain text, not escaped.
struct Cell {
  std::string figure;
  std::string aside;
};

struct Column {
  std::string heading;
  std::string meaning;  // a sentence for the reader who asks
  std::function<Cell(const Row&)> cell;
};

/// All but the first column, which is the strategy's name. The columns refer to nothing of `comparison` afterwards.
std::vector<Column> columns(const Comparison& comparison);

}  // namespace motley::report
