#include <gtest/gtest.h>

#include <vector>

#include "policy/load_finish_together.h"

namespace motley::policy {
namespace {

/// GPUs that have measured themselves, in grains of 8.
std::vector<Newcomer> gpus(const std::vector<double>& samples_per_second) {
  std::vector<Newcomer> all;
  for (std::uint32_t w = 0; w < samples_per_second.size(); ++w) all.push_back({{w}, 0, 8, false, samples_per_second[w]});
  return all;
}

void observe(Monitor& monitor, std::uint32_t worker, std::uint32_t samples, double seconds, bool first_of_size = false) {
  Contribution made{};
  made.worker = {worker};
  made.samples = samples;
  made.local_steps = 1;
  made.compute = from_seconds(seconds);
  made.first_of_size = first_of_size;
  monitor.observe(made);
}

TEST(FirstShares, GoByWhatEveryoneHasMeasuredOfItself) {
  LoadFinishTogether load(1024, {});
  load.joined(gpus({20000, 15000, 10000, 5000}));
  EXPECT_EQ(load.batch({0}), 408U);
  EXPECT_EQ(load.batch({3}), 104U);
  EXPECT_EQ(load.batch({0}) + load.batch({1}) + load.batch({2}) + load.batch({3}), 1024U);
}

TEST(FirstShares, AreEqualWhereSomebodyHasNotLooked) {
  LoadFinishTogether load(1024, {});
  load.joined(gpus({20000, 15000, 10000, 0}));
  EXPECT_EQ(load.batch({0}), 256U);
  EXPECT_EQ(load.batch({3}), 256U);
}

TEST(FirstShares, StayUntilOthersAreClearlySooner) {
  LoadFinishTogether load(1024, {});
  load.joined(gpus({10000, 10000}));
  Monitor monitor;
  monitor.joined({0});
  monitor.joined({1});
  const auto nothing = [](WorkerId) { return 0.0; };
  observe(monitor, 0, 512, 0.0500);
  observe(monitor, 1, 512, 0.0505);  // a grain from one to the other would gain less than it costs to meet a new size
  load.updated(monitor, nothing);
  EXPECT_EQ(load.batch({0}), 512U);
  for (int i = 0; i < 30; ++i) observe(monitor, 1, 512, 0.06);
  load.updated(monitor, nothing);
  EXPECT_GT(load.batch({0}), 530U);
}

TEST(FirstShares, TheFirstStepOfASizeOnlyTellsThatADeviceIsFaster) {
  Monitor monitor;
  monitor.joined({0});
  observe(monitor, 0, 512, 10, /*first_of_size=*/true);
  EXPECT_EQ(monitor.speed({0}).observations(), 0U);
  observe(monitor, 0, 512, 0.05);
  observe(monitor, 0, 520, 10, /*first_of_size=*/true);
  EXPECT_NEAR(monitor.speed({0}).samples_per_second(), 10240, 1);
  observe(monitor, 0, 800, 0.04, /*first_of_size=*/true);
  EXPECT_GT(monitor.speed({0}).samples_per_second(), 12000)
      << "else a device that never does a size twice would stay as slow as it once was";
}

}  // namespace
}  // namespace motley::policy
