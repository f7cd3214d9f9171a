// Which servers still turn what they hold. A server that hangs looks like a worker that does: contributions do not become whole, parameters
// do not come. So when somebody has been waited for, each server is asked for a sign of life, which it gives when what was asked of it
// before is done. No worker is to blame while a server owes that sign.
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

  /// Those that are to be asked now: all that owe no answer.
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
  std::vector<std::optional<Instant>> asked_;  // by server; none: it owes nothing
};

}  // namespace motley::protocol
