// Progress on stderr: a bar that repaints itself on a terminal, a plain line now and then in a log. Safe to tell from several threads.
#pragma once
#include <cstddef>
#include <mutex>
#include <string>
#include <vector>

namespace motley::report {

class ProgressBar {
 public:
  /// `parts` equal pieces of work.
  ProgressBar(std::string title, std::size_t parts);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// Piece `part` is done to this share (0..1).
  void at(std::size_t part, double share);

 private:
  void paint(double share);
  std::mutex mutex_;
  std::string title_;
  std::vector<double> shares_;
  bool terminal_;
  int last_percent_ = -1;
};

}  // namespace motley::report
