// What a user sees of a run in progress: on a terminal a bar and a line per worker that repaint themselves, in a log a plain line now and
// then. Reads the trace alone.
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
  std::uint64_t update_samples = 0;  // of a pipeline: each update counts so many; 0: it is none
};

class Screen : public trace::Sink {
 public:
  explicit Screen(ScreenOptions options, const std::vector<std::string>& node_names) : options_(std::move(options)), names_(node_names) {}

  void on_event(const trace::Event& event) override;
  /// Due a few times a second; paints on a terminal.
  void tick();
  /// A line of its own, above what repaints itself.
  void say(const std::string& sentence);
  /// Leaves the last state on the screen and paints no more.
  void finish();

 private:
  struct Member {
    std::string node;
    std::string state = "waiting";
    std::uint64_t batch = 0;
    double push_bits = 32;
    double pull_bits = 32;
    std::uint64_t samples = 0;
    Instant since{};
    double waited_s = 0;
    Instant waiting_since{};
  };
  static void turn(Member* member, const std::string& state, Instant now);
  void joined(WorkerId worker, std::uint64_t node, Instant now);
  /// That a pipeline has trained with after so many updates.
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
