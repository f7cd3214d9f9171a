// A comparison in words: one sentence for the result, and remarks that qualify it.
#pragma once
#include <string>
#include <vector>

#include "report/comparison.h"

namespace motley::report {

/// Plain text, not escaped.
struct Headline {
  std::string result;                // "hps reaches 86.0 % in 38.2 s, 3.5x sooner than bsp and 1.6x sooner than lb-bsp."
  std::vector<std::string> remarks;  // the runner-up, a tie over the seeds, a lower final accuracy, a single seed
};
Headline headline(const Comparison& comparison);

/// "86.0 %", or "the target" when none was set.
std::string target_text(const Comparison& comparison);

}  // namespace motley::report
