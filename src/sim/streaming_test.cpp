// A device that reads three slices and makes them, against times worked out by hand: a third of it forward.
#include "sim/streaming.h"

#include <gtest/gtest.h>

namespace motley::sim {
namespace {

struct Device {
  std::optional<Instant> at(double now_s) { return streaming.advance(at_seconds(now_s), here, made); }
  LayerSequence layer_sequence{{{0, 0.1, 0.2}, {1, 0.8, 0.6}}};
  Streaming streaming{layer_sequence, at_seconds(10), from_seconds(1)};
  std::vector<bool> here{true, true, true};
  std::vector<SliceId> made;
};

TEST(Streaming, WithEverythingThereItStandsNowhere) {
  Device device;
  EXPECT_EQ(device.at(10), at_seconds(10.1));
  EXPECT_EQ(device.at(10.1), at_seconds(10.2));
  EXPECT_EQ(device.at(10.2), at_seconds(10.6));
  EXPECT_EQ(device.at(10.6), at_seconds(10.8));
  EXPECT_EQ(device.made, (std::vector<SliceId>{{2}}));
  EXPECT_EQ(device.at(10.8), at_seconds(11));
  EXPECT_EQ(device.at(11), std::nullopt);
  EXPECT_EQ(device.made, (std::vector<SliceId>{{2}, {1}, {0}})) << "the first layer last";
  EXPECT_EQ(device.streaming.ends(), at_seconds(11));
  EXPECT_EQ(device.streaming.stalled(), Duration{0});
}

TEST(Streaming, StandsUntilWhatItReadsIsHereAndEverythingElseIsSoMuchLater) {
  Device device;
  device.here = {true, false, true};
  device.at(10);
  EXPECT_EQ(device.at(10.1), std::nullopt);
  EXPECT_TRUE(device.streaming.is_stalled());
  EXPECT_EQ(device.at(10.3), std::nullopt) << "another slice has come";
  EXPECT_FALSE(device.streaming.has_read());
  device.here[1] = true;
  EXPECT_EQ(device.at(10.5), at_seconds(10.6)) << "0.4 late";
  EXPECT_FALSE(device.streaming.is_stalled());
  EXPECT_EQ(device.streaming.stalled(), from_seconds(0.4));
  EXPECT_EQ(device.at(10.6), at_seconds(11));
  EXPECT_TRUE(device.streaming.has_read());
  EXPECT_EQ(device.streaming.ends(), at_seconds(11.4));
}

TEST(Streaming, AskedLateItHasMadeAllThatWasDue) {
  Device device;
  EXPECT_EQ(device.at(10.85), at_seconds(11));
  EXPECT_EQ(device.made, (std::vector<SliceId>{{2}, {1}}));
}

}  // namespace
}  // namespace motley::sim
