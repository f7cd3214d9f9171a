// Alignment tests: the servers compute the inner product of a contribution with the momentum, each over its own slices; the sum over all
// servers is the result.
#pragma once
#include <algorithm>
#include <boost/container/flat_set.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "base/ids.h"
#include "base/time.h"
#include "wire/message.h"

namespace motley::protocol {

class AlignmentTests {
 public:
  explicit AlignmentTests(std::uint32_t servers) : servers_(servers) {}

  void begin(Instant now, WorkerId worker, Step step) { tests_.emplace(std::pair{worker, step}, Test{now, 0, {}}); }

  /// The sum, when this was the last server's result.
  [[nodiscard]] std::optional<double> on_result(const wire::AlignmentResult& result) {
    const auto found = tests_.find({result.worker, result.step});
    if (found == tests_.end() || !found->second.reported.insert(result.server).second) return std::nullopt;
    found->second.sum += result.alignment;
    if (found->second.reported.size() < servers_) return std::nullopt;
    const double sum = found->second.sum;
    tests_.erase(found);
    return sum;
  }

  [[nodiscard]] Duration longest_wait(Instant now) const {
    Duration longest{};
    for (const auto& [contribution, test] : tests_) longest = std::max(longest, now - test.began);
    return longest;
  }
  void driver_paused(Duration time) {
    for (auto& [contribution, test] : tests_) test.began += time;
  }

 private:
  struct Test {
    Instant began{};
    double sum = 0;
    boost::container::flat_set<ServerId> reported;
  };
  std::uint32_t servers_;
  std::map<std::pair<WorkerId, Step>, Test> tests_;
};

}  // namespace motley::protocol
