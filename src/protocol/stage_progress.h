// How the stages of a pipeline get on. When one of them hangs all wait, so counts of what is committed do not say which. Each stage tells
// twice a heartbeat how many pieces of work (parts, updates, copies of the model) its device has done, and whether it is at another one.
//
// Rule:  limit = the least limit, or 10 * the longest time that this stage was seen at one piece, if that is longer
//        Before it has committed anything in its generation: 10 * the least limit, twice as long after each stage that this expelled.
//        A stage that is seen at one piece for longer has hung. When no stage is at anything and none moves for 10 * the least limit,
//        something is lost on the way between them.
// The longest time is the conductor's own observation: from when a piece was first seen until it was last seen. Short ones are seen once.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "base/time.h"

namespace motley::protocol {

class StageProgress {
 public:
  explicit StageProgress(Duration least) : least_(least) {}

  /// Another generation of so many stages. Nothing is known of any.
  void begin(std::size_t stages);
  void committed(Instant now, std::uint32_t stage);
  /// Somebody else has moved.
  void moved(Instant now) { moved_ = now; }
  void driver_paused(Duration time);

  struct Late {
    Duration took{};     // so far
    Duration longest{};  // before; 0: it has never committed
  };
  /// What a stage has told. Something: it has hung.
  [[nodiscard]] std::optional<Late> status(Instant now, std::uint32_t stage, std::uint64_t done, bool busy);
  /// For how long, if that is too long.
  [[nodiscard]] std::optional<Duration> no_progress(Instant now) const;

 private:
  struct Stage {
    std::optional<Instant> since;  // that it is at one piece
    Instant seen{};                // at it, last
    std::uint64_t done = 0;
    Duration longest{};
    bool has_committed = false;
  };
  Duration least_;
  int first_ = 1;  // how many times the limit of a stage that has committed nothing has become longer
  std::vector<Stage> stages_;
  std::optional<Instant> moved_;  // anybody; none: nothing was heard of this generation
};

}  // namespace motley::protocol
