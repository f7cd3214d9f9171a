// Server watch: detects servers that hang. A hung server looks like hung workers: contributions do not become complete, parameters do not
// arrive. So when a worker has been waited for, each server is sent a Probe, which it returns when all earlier requests are done. No worker
// is expelled while a server owes its answer.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "base/time.h"

namespace motley::protocol {

class ServerWatch {
 public:
  ServerWatch(std::uint32_t servers, Duration limit) : limit_(limit), asked_(servers) {}

  /// The servers to send a Probe now: all that owe no answer.
  [[nodiscard]] std::vector<ServerId> ask(Instant now);
  void answered(ServerId server);
  void driver_paused(Duration time);

  struct Silent {
    ServerId server;
    Duration for_how_long{};
  };
  /// A server that has owed its answer for longer than the limit.
  [[nodiscard]] std::optional<Silent> silent(Instant now) const;
  [[nodiscard]] bool all_have_answered() const;

 private:
  Duration limit_;
  std::vector<std::optional<Instant>> asked_;  // by server; none: it owes no answer
};

}  // namespace motley::protocol
