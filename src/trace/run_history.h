// The history of a run in a few hundred points: each worker's batch sizes and bits over time, and how far apart the workers of each update
// finished. Memory does not grow with the length of the run.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "trace/event.h"
#include "trace/members.h"

namespace motley::trace {

/// Keeps every n-th value; n doubles whenever there are too many.
template <class T>
class Downsampled {
 public:
  void add(const T& value) {
    if (seen_++ % stride_ != 0) return;
    kept_.push_back(value);
    if (kept_.size() < most) return;
    for (std::size_t i = 0; 2 * i < kept_.size(); ++i) kept_[i] = kept_[2 * i];
    kept_.resize((kept_.size() + 1) / 2);
    stride_ *= 2;
  }
  [[nodiscard]] const std::vector<T>& values() const { return kept_; }

 private:
  static constexpr std::size_t most = 512;
  std::vector<T> kept_;
  std::uint64_t seen_ = 0;
  std::uint64_t stride_ = 1;
};

class RunHistory : public Sink {
 public:
  struct Share {
    double time_s = 0;
    std::uint64_t samples = 0;  // done in this step
    double push_bits = 0;
    double pull_bits = 0;
    std::uint64_t local_steps = 1;
  };
  struct Worker {
    std::uint32_t node = 0;
    std::vector<Share> shares;
  };
  struct Finish {
    double time_s = 0;
    double spread_s = 0;  // between the first and the last end of computing of one update
  };

  void on_event(const Event& event) override;

  [[nodiscard]] std::vector<Worker> workers() const;  // in order of joining
  [[nodiscard]] const std::vector<Finish>& finishes() const { return finishes_.values(); }

 private:
  struct StepInProgress {
    double push_bits = 0;
    double pull_bits = 0;
    Instant ended{};
    std::uint64_t local_steps = 1;
  };
  struct Lane {
    std::uint32_t node = 0;
    Downsampled<Share> shares;
    StepsInProgress<StepInProgress> steps;  // released, not yet counted
  };
  static constexpr std::size_t most_parts = 65'536;  // of an update
  void update(Lane& lane, const Event& event);
  void contributed(Lane& lane, const Contributed& contribution, Instant at);
  void counted(Lane& lane, Step step);
  void applied(Instant at);

  Members<Lane> lanes_;
  std::vector<Instant> ends_;  // of computing, of the parts of the next update
  Downsampled<Finish> finishes_;
};

}  // namespace motley::trace
