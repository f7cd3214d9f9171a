// The progress of a run on stderr: on a terminal a bar and a line per worker, repainted a few times a second; in a log one plain line per
// evaluation.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "trace/event.h"
#include "trace/members.h"

namespace motley::report {

struct ScreenOptions {
  std::string title;
  std::uint64_t total_samples = 0;
  double sum_of_parts = 0;  // samples per second; 0: unknown
  bool terminal = false;
  std::uint64_t update_samples = 0;  // of each update of a pipeline; 0: this run is no pipeline
};

class Screen : public trace::Sink {
 public:
  explicit Screen(ScreenOptions options, const std::vector<std::string>& node_names) : options_(std::move(options)), names_(node_names) {}

  void on_event(const trace::Event& event) override;
  /// To be called a few times a second; repaints a terminal.
  void tick();
  /// Prints a line above the part that is repainted.
  void say(const std::string& sentence);
  /// Paints the last state and leaves it on the terminal.
  void finish();

 private:
  struct Member {
    std::string node;
    std::string state = "waiting";
    std::uint64_t batch = 0;
    unsigned push_bits = 32;
    unsigned pull_bits = 32;
    std::uint64_t samples = 0;
    Instant since{};
    double waited_s = 0;
    Instant waiting_since{};
  };
  static void change_state(Member* member, const std::string& state, Instant now);
  void joined(WorkerId worker, std::uint64_t node, Instant now);
  void released(const trace::Released& released, Instant at);
  void counted(const trace::Counted& contribution);
  void evaluated(const trace::Evaluated& evaluation);
  void repartitioned(const trace::Repartitioned& layout, Instant at);
  /// Samples of a pipeline's first `updates` updates.
  [[nodiscard]] std::uint64_t samples_of(Version updates) const {
    return std::min(options_.total_samples, updates.value * options_.update_samples);
  }
  [[nodiscard]] std::vector<std::string> lines() const;
  void erase();

  ScreenOptions options_;
  const std::vector<std::string>& names_;
  trace::Members<Member> members_;
  Instant now_{};
  std::uint64_t counted_ = 0;
  double accuracy_ = 0;
  double loss_ = 0;
  bool evaluated_ = false;
  std::size_t painted_ = 0;  // lines on the terminal
};

}  // namespace motley::report
