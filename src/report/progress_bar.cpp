#include "report/progress_bar.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <numeric>

namespace motley::report {

ProgressBar::ProgressBar(std::string title, std::size_t parts)
    : title_(std::move(title)), shares_(parts, 0.0), terminal_(isatty(STDERR_FILENO) == 1) {}

ProgressBar::~ProgressBar() {
  if (terminal_ && last_percent_ >= 0) fmt::print(stderr, "\r{:78}\r", "");
}

void ProgressBar::at(std::size_t part, double share) {
  const std::lock_guard lock(mutex_);
  shares_[part] = std::max(shares_[part], share);
  paint(std::accumulate(shares_.begin(), shares_.end(), 0.0) / static_cast<double>(shares_.size()));
}

void ProgressBar::paint(double share) {
  const int percent = static_cast<int>(share * 100);
  const int step_percent = terminal_ ? 1 : 10;  // a log wants few lines
  if (percent / step_percent == last_percent_ / step_percent && last_percent_ >= 0) return;
  last_percent_ = percent;
  const auto done = std::count_if(shares_.begin(), shares_.end(), [](double s) { return s >= 1; });
  if (terminal_)
    fmt::print(stderr, "\r{} [{:<40}] {:3} %  {}/{} runs", title_, std::string(static_cast<std::size_t>(share * 40), '='), percent, done,
               shares_.size());
  else
    fmt::print(stderr, "{}: {} %, {}/{} runs\n", title_, percent, done, shares_.size());
  std::fflush(stderr);
}

}  // namespace motley::report
